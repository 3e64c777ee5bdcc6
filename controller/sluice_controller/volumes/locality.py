"""Where a volume lies, and who uses it: Cinder's word, and that of the konnector that has it attached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.volumes.cinder_access import node_konnector, service_cinder
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, PeerError
from sluice_volumes import operations
from sluice_volumes.cinder.records import CinderVolume
from sluice_volumes.messages import RbdLocality

_UNATTACHED: Final = "the OSDs of a volume in ceph are known while it is attached"


@dataclass(frozen=True, slots=True)
class Consumer:
    """Whoever uses a volume; ``node`` and ``device`` are empty when that is not through Sluice, or not known."""

    node: str
    host: str
    device: str = ""


@dataclass(frozen=True, slots=True)
class VolumeLocality:
    """
    :param fabric: how its pool is reached; empty when Cinder does not say
    :param consumer: None while it is not attached
    :param objects: where its objects lie in Ceph; None when it does not lie there, or nobody can tell
    :param warnings: why something is not known
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


def find(backend: Backend, view: VolumeView) -> VolumeLocality:
    """Where a volume lies.  A konnector that is away costs what it knows, and is a warning.

    :raises PeerError: when Cinder or Redis is away
    """
    volume = service_cinder(backend).volume(view.volume.id)  # a member's token does not show the pool
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
