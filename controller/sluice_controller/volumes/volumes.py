"""Volumes of Cinder with their records: their pool and back end, and their use.

Cinder tells who uses a volume, and so does the konnector that has it attached.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, node_konnector, service_cinder
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes import operations
from sluice_volumes.cinder.records import CinderVolume
from sluice_volumes.messages import UNDER_WAY, RbdLocality, VolumeRecord, is_volume_id

log = logging.getLogger(__name__)

_UNATTACHED: Final = "the OSDs of a volume in ceph are known while it is attached"


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume, its record (None: Sluice neither created nor adopted it), and the name of its tier."""

    volume: CinderVolume
    record: VolumeRecord | None
    tier: str

    @property
    def size(self) -> int:
        """The requested GiB; Cinder's volume may have more."""
        return (self.record and self.record.size) or self.volume.size


def page(
    backend: Backend,
    caller: Caller,
    everybody: bool,
    limit: int,
    marker: str,
    project: str = "",
    name: str = "",
    tier: str = "",
) -> Page[VolumeView]:
    """Volumes by id.

    :param everybody: volumes of all projects, not only of the caller's
    :param project: only those of the project with this id
    """
    filters = {"name": name} if name else {}
    if project:
        filters["project_id"] = project
    cinder = caller_cinder(backend, caller)
    found = _views(backend, cinder.volumes(everybody=everybody, **filters))
    wanted = {one.volume.id: one for one in found if tier in ("", one.tier) and project in ("", one.volume.project)}
    return entries.page(wanted, limit, marker)


def find(backend: Backend, caller: Caller, name: str) -> VolumeView:
    """The volume with this name or id, if the caller may see it.

    :raises NotFound: when there is none
    :raises Conflict: when several have the name
    """
    cinder = caller_cinder(backend, caller)
    if is_volume_id(name):
        volumes = [cinder.volume(name)]
    else:
        volumes = cinder.volumes(everybody=caller.identity.is_admin, name=name)
    return _views(backend, [only(name, volumes)])[0]


def only(name: str, volumes: list[CinderVolume]) -> CinderVolume:
    """The one volume in ``volumes``.

    :raises NotFound: when there is none
    :raises Conflict: naming some of them, when there are several
    """
    if not volumes:
        raise NotFound(f"there is no volume `{name}`")
    if len(volumes) > 1:
        ids = ", ".join(f"`{one.id}` of project `{one.project}`" for one in volumes[:5])
        raise Conflict(f"`{name}` is the name of {len(volumes)} volumes, say one of {ids}")
    return volumes[0]


def _views(backend: Backend, volumes: Iterable[CinderVolume]) -> list[VolumeView]:
    keys, run = backend.store.keys, backend.store.run
    tiers = run(operations.TIERS.read_all(keys))
    records = run(operations.RECORDS.read_all(keys))
    return [VolumeView(one, records.get(one.id), one.type if one.type in tiers else "") for one in volumes]


@dataclass(frozen=True, slots=True)
class Consumer:
    """The consumer of a volume; ``node`` and ``device`` are empty if it is not attached by Sluice, or not known."""

    node: str
    host: str
    device: str = ""


@dataclass(frozen=True, slots=True)
class VolumeLocality:
    """
    :param fabric: how its pool is reached; empty if Cinder does not show it
    :param consumer: None while it is not attached
    :param objects: the locations of its objects in Ceph; None if it is in another back end, or not known
    :param warnings: why values are not known
    """

    volume: CinderVolume
    fabric: str
    consumer: Consumer | None = None
    objects: RbdLocality | None = None
    warnings: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The host of its pool, in Cinder's configuration."""
        return self.volume.pool.partition("@")[0]

    @property
    def back_end(self) -> str:
        """The back end of its pool, in Cinder's configuration."""
        return self.volume.pool.partition("@")[2].partition("#")[0]


def find_locality(backend: Backend, view: VolumeView) -> VolumeLocality:
    """The location of a volume.  If a konnector is unreachable its values are missing, and a warning says so.

    :raises PeerError: when Cinder or Redis is unreachable
    """
    volume = service_cinder(backend).volume(view.volume.id)  # Cinder does not show the pool to a member's token
    pool = backend.store.run(operations.POOLS.read_all(backend.store.keys)).get(volume.pool)
    fabric = pool.capabilities.get("fabric", "") if pool is not None else ""
    host = next((one.host for one in volume.attachments), "")
    node = view.record.node if view.record is not None else ""
    if not node:
        warnings = (_UNATTACHED,) if fabric in ("rbd", "") else ()
        return VolumeLocality(volume, fabric, Consumer("", host) if volume.attachments else None, None, warnings)
    consumer = Consumer(node, host)
    try:
        konnector = node_konnector(backend, node)
        consumer = Consumer(node, host, str(konnector.volume(volume.id).get("device") or ""))
        return VolumeLocality(volume, fabric, consumer, konnector.locality(volume.id))
    except (CallerError, PeerError) as error:
        return VolumeLocality(volume, fabric, consumer, None, (str(error),))


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """The use of a volume.

    :param rates: the limits that its konnector applies, by parameter; None: not attached, or no answer
    :param fault: its problem, as its konnector reports, or the reason for which an operation on it waits; empty: none
    :param data_path: the first stage of requests before its filters, as its konnector reports; empty: not known
    """

    rates: Mapping[str, float] | None = None
    fault: str = ""
    data_path: str = ""


def read_use(backend: Backend, record: VolumeRecord) -> VolumeUse:
    """The present use of a volume."""
    if not record.node:
        known = backend.store.run(operations.JOBS.read_all(backend.store.keys)).values()
        waiting = (one for one in known if one.volume == record.id and one.state == UNDER_WAY)
        return VolumeUse(None, next((one.reason for one in waiting), ""))
    try:
        shown = node_konnector(backend, record.node).volume(record.id)
    except (CallerError, PeerError) as error:
        log.warning("the use of volume `%s` is not known: %s", record.id, error)
        return VolumeUse(None, str(error))
    limits, said = shown.get("limits_in_force"), [str(shown.get(name) or "") for name in ("fault", "data_path")]
    if not isinstance(limits, Mapping):
        return VolumeUse(None, *said)
    rates = {name: float(rate) for name, rate in limits.items() if isinstance(rate, int | float) and rate}
    return VolumeUse(rates, *said)
