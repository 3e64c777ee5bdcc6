"""Connections that os-brick makes a block device of (iSCSI, Fibre Channel, NVMe over fabrics, …).

os-brick is no dependency: where it is not installed such a connection is refused by name.  It works in this process,
which is root's, and not through a daemon of its own.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import CallerError, PeerError

#: How often os-brick looks for a device.
_SCANS: Final = 3
#: Types that do not need it.
_WITHOUT: Final = ("nbd", "nfs", "rbd", "local")


@dataclass(frozen=True, slots=True)
class BrickDevice:
    """``record`` is a file that says which device it is; it does not survive a reboot, as the device does not."""

    record: Path

    def connect(self, kind: str, data: Mapping[str, Any]) -> str:
        """The path of the device, which is connected if it is not.

        :param kind: type of the connection
        :raises CallerError: when os-brick is missing, or does not know the type
        :raises PeerError: when it fails
        """
        if self.record.exists():
            return str(json.loads(self.record.read_text(encoding="utf-8"))["device"]["path"])
        connector, errors = self._load(kind)
        try:
            device = connector.connect_volume(dict(data))
        except errors as error:
            raise PeerError(f"os-brick does not connect a volume of type `{kind}`: {type(error).__name__}") from error
        shown = {"kind": kind, "device": {name: value for name, value in device.items() if isinstance(value, str)}}
        self.record.write_text(json.dumps(shown), encoding="utf-8")
        return str(device["path"])

    def disconnect(self, data: Mapping[str, Any]) -> None:
        """Take the device away.

        :raises PeerError: when os-brick fails
        """
        known = json.loads(self.record.read_text(encoding="utf-8"))
        connector, errors = self._load(known["kind"])
        try:
            connector.disconnect_volume(dict(data), known["device"])
        except errors as error:
            raise PeerError(f"os-brick does not disconnect `{known['device']['path']}`: {error}") from error
        self.record.unlink()

    def _load(self, kind: str) -> tuple[Any, tuple[type[Exception], ...]]:
        """os-brick's connector of a type, and what it raises.

        :raises CallerError: when os-brick is missing, or does not know the type
        """
        try:
            connectors: Any = importlib.import_module("os_brick.initiator.connector")
            privileged: Any = importlib.import_module("os_brick.privileged")
            exceptions: Any = importlib.import_module("os_brick.exception")
            concurrency: Any = importlib.import_module("oslo_concurrency.processutils")
            config: Any = importlib.import_module("oslo_config.cfg")
        except ImportError as error:
            raise CallerError(
                f"connections of type `{kind}` cannot be used here, expected {', '.join(_WITHOUT)}, "
                f"or os-brick to be installed: {error}"
            ) from error
        privileged.default.set_client_mode(False)
        config.CONF.set_default("lock_path", str(self.record.parent.parent), "os_brick")  # all volumes share it
        try:
            found = connectors.InitiatorConnector.factory(kind.upper(), "", device_scan_attempts=_SCANS)
        except (exceptions.InvalidConnectorProtocol, ValueError) as error:
            raise CallerError(f"os-brick knows no connections of type `{kind}`") from error
        return found, (exceptions.BrickException, concurrency.ProcessExecutionError, OSError)
