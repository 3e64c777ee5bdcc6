"""Pools, volumes, snapshots, attachments and volume types of Cinder, with the fields that Sluice uses.

Fields that a caller may not see are empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_volumes.messages import Pool

#: In the metadata of a volume or a snapshot: the id of the operation that created it.
OPERATION: Final = "sluice_operation"
AVAILABLE: Final = "available"
IN_USE: Final = "in-use"
GIB: Final = 1 << 30
_PREFIX: Final = "sluice:"
#: Fields of a pool's report that identify it.
_PLACE: Final = ("volume_backend_name", "pool_name")
#: Drivers' names of their protocol, in lower case → fabric.
_FABRICS: Final = {"ceph": "rbd", "fibre_channel": "fc"}


@dataclass(frozen=True, slots=True)
class CinderAttachment:
    """An attachment of a volume.

    ``connection`` is the way to reach the volume, and may hold secrets; it is empty until a connector is known.
    ``host`` is the machine to which it is attached.
    """

    id: str
    volume: str
    status: str = ""
    host: str = ""
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class CinderVolume:
    """A volume; ``size`` in GiB.

    ``type`` is the name of its volume type, ``pool`` its ``host@backend#pool``, empty for callers who may not see it.
    ``attachments`` have no connections.
    """

    id: str
    name: str
    status: str
    size: int
    project: str = ""
    type: str = ""
    pool: str = ""
    created: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    attachments: tuple[CinderAttachment, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether Cinder is not changing it now."""
        return self.status in (AVAILABLE, IN_USE) or self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether Cinder's last change of it failed."""
        return self.status.startswith("error")


@dataclass(frozen=True, slots=True)
class CinderSnapshot:
    """A snapshot of a volume; ``size`` in GiB."""

    id: str
    name: str
    volume: str
    status: str
    size: int
    created: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        """Whether Cinder is not changing it now."""
        return self.status == AVAILABLE or self.status.startswith("error")


@dataclass(frozen=True, slots=True)
class CinderType:
    """A volume type and its extra specs."""

    id: str
    name: str
    specs: Mapping[str, str] = field(default_factory=dict)


def pool_of(data: Mapping[str, Any]) -> Pool:
    """Return a pool of ``GET /scheduler-stats/get_pools?detail=true``."""
    reported = data.get("capabilities", {})
    capabilities = {
        name.removeprefix(_PREFIX): str(value) for name, value in reported.items() if name.startswith(_PREFIX)
    }
    protocol = reported.get("storage_protocol", "")
    # a driver may report all former names of its protocol
    first = str(protocol[0] if isinstance(protocol, list) and protocol else protocol or "").lower()
    if first:
        capabilities.setdefault("fabric", _FABRICS.get(first, first))
    specs = {name: str(reported[name]) for name in _PLACE if reported.get(name)}
    total, free = (_bytes(reported.get(f"{name}_capacity_gb")) for name in ("total", "free"))
    return Pool(data["name"], total, free, capabilities, specs=specs)


def _bytes(value: Any) -> float:
    """Return GiB as bytes; -1 for ``unknown``, ``infinite`` and other texts."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1.0
    return value * float(GIB)


def type_of(data: Mapping[str, Any]) -> CinderType:
    """A volume type."""
    return CinderType(data["id"], data["name"], dict(data.get("extra_specs") or {}))


def volume_of(data: Mapping[str, Any]) -> CinderVolume:
    """A volume."""
    return CinderVolume(
        data["id"],
        data.get("name") or "",
        data["status"],
        data["size"],
        data.get("os-vol-tenant-attr:tenant_id") or "",
        data.get("volume_type") or "",
        data.get("os-vol-host-attr:host") or "",
        data.get("created_at") or "",
        dict(data.get("metadata") or {}),
        tuple(
            CinderAttachment(one.get("attachment_id") or "", data["id"], "attached", one.get("host_name") or "")
            for one in data.get("attachments") or ()
        ),
    )


def snapshot_of(data: Mapping[str, Any]) -> CinderSnapshot:
    """A snapshot."""
    return CinderSnapshot(
        data["id"],
        data.get("name") or "",
        data["volume_id"],
        data["status"],
        data["size"],
        data.get("created_at") or "",
        dict(data.get("metadata") or {}),
    )


def attachment_of(data: Mapping[str, Any]) -> CinderAttachment:
    """Return an attachment; one from a list has no connection."""
    status = data.get("status") or ""
    return CinderAttachment(data["id"], data["volume_id"], status, connection=dict(data.get("connection_info") or {}))
