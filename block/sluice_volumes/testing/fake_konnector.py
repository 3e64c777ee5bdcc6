"""A konnector in memory with the methods of :class:`sluice_volumes.konnector_client.Konnector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice_core.errors import Conflict, NotFound
from sluice_volumes.messages import RbdLocality


class FakeKonnector:
    """Attaches every volume; ``held`` are ids of volumes whose devices are in use.

    ``faults`` maps the name of a method to the exception of its next call, ``late`` whether its work is done before.
    ``shown`` maps ids to fields of volumes that replace the default ones.
    ``lies`` maps ids to the localities of volumes in Ceph.
    ``header`` is the size in bytes of a new or known ``luks`` header.
    """

    def __init__(self, host: str = "consumer", size: int = 1 << 30) -> None:
        self.host = host
        self.size = size
        self.header = 16 << 20
        self.volumes: dict[str, dict[str, Any]] = {}
        self.held: set[str] = set()
        self.revoked: list[str] = []
        self.confirmed: list[str] = []
        self.shown: dict[str, dict[str, Any]] = {}
        self.lies: dict[str, RbdLocality] = {}
        self.figures = {"read_bw": 9e7, "write_bw": 8e7, "read_iops": 9000.0, "write_iops": 7000.0}
        self.faults: dict[str, Exception] = {}
        self.late = False
        #: The requested connectors: the export, and the filters.
        self.connectors: list[tuple[str, ...]] = []

    def connector(self, export: str, filters: Sequence[str]) -> dict[str, Any]:
        """As of the client."""
        self._fail("connector")
        self.connectors.append((export, *filters))
        return {"host": self.host, "ip": "192.0.2.7", "platform": "x86_64", "os_type": "linux"}

    def volume(self, volume_id: str) -> dict[str, Any]:
        """As of the client."""
        self._fail("volume")
        if volume_id not in self.volumes:
            raise NotFound(f"volume `{volume_id}` is not attached here")
        wanted = self.volumes[volume_id]
        encrypted = any(one["keyword"] == "luks" for one in wanted["stack"])
        size = wanted.get("size") or self.size - (self.header if encrypted else 0)
        shown = {"state": "attached", "device": "/dev/loop7", "size": size}
        limits = {"max_bw": 3e6, "max_iops": 0.0}
        more = self.shown.get(volume_id, {})
        return {"attachment": wanted["attachment"], "limits_in_force": limits, "fault": "", **shown, **more}

    def attach(self, volume_id: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """As of the client."""
        if not self.late:
            self._fail("attach")
        self.volumes[volume_id] = dict(wanted)
        self._fail("attach")
        return self.volume(volume_id)

    def locality(self, volume_id: str) -> RbdLocality | None:
        """As of the client."""
        self._fail("locality")
        self.volume(volume_id)
        return self.lies.get(volume_id)

    def resize(self, volume_id: str, size: int = 0) -> bool:
        """As of the client."""
        self._fail("resize")
        if size:
            self.volumes[volume_id]["size"] = size
        return bool(self.volume(volume_id)) and self.volumes[volume_id]["export"] == "nbd"

    def detach(self, volume_id: str) -> None:
        """As of the client."""
        self._fail("detach")
        if volume_id not in self.volumes:
            raise NotFound(f"volume `{volume_id}` is not attached here")
        if volume_id in self.held:
            raise Conflict("the device is held by process 4711 (fio)")
        del self.volumes[volume_id]

    def confirm(self, volume_id: str, attachment: str) -> None:
        """As of the client; :attr:`confirmed` has the ids of attachments."""
        self._fail("confirm")
        self._check_attachment(volume_id, attachment)
        self.confirmed.append(attachment)

    def revoke(self, volume_id: str, attachment: str) -> None:
        """As of the client; :attr:`revoked` has the ids of attachments."""
        self._fail("revoke")
        self._check_attachment(volume_id, attachment)
        del self.volumes[volume_id]
        self.revoked.append(attachment)

    def measure(self, volume_id: str, seconds: int) -> dict[str, Any]:
        """As of the client."""
        self._fail("measure")
        self.volumes[volume_id]["measured"] = seconds
        return self.measurement(volume_id)

    def measurement(self, volume_id: str) -> dict[str, Any]:
        """As of the client; the result is ``figures``, and the measurement runs while they are empty."""
        self._fail("measurement")
        if "measured" not in self.volumes.get(volume_id, {}):
            raise NotFound(f"volume `{volume_id}` is not measured here")
        return {"state": "measured", **self.figures} if self.figures else {"state": "running", "phase": "write_bw"}

    def _check_attachment(self, volume_id: str, attachment: str) -> None:
        if self.volumes.get(volume_id, {}).get("attachment") != attachment:
            raise NotFound(f"volume `{volume_id}` is not attached here by attachment `{attachment}`")

    def _fail(self, what: str) -> None:
        fault = self.faults.pop(what, None)
        if fault is not None:
            raise fault
