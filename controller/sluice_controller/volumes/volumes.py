"""Volumes as Cinder has them, with what Sluice knows of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.volumes.cinder_access import Caller, caller_cinder
from sluice_core.errors import Conflict, NotFound
from sluice_volumes import operations
from sluice_volumes.cinder.records import CinderVolume
from sluice_volumes.messages import VolumeRecord, is_volume_id


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume, its record (None: it was not made or adopted by Sluice), and the name of its tier."""

    volume: CinderVolume
    record: VolumeRecord | None
    tier: str

    @property
    def size(self) -> int:
        """GiB that its user asked for; in Cinder there may be more."""
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

    :param everybody: those of all projects, not only of the caller's
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
    """The volume that is called ``name``, or has this id, and that the caller may see.

    :raises NotFound: when there is none
    :raises Conflict: when several are called so
    """
    cinder = caller_cinder(backend, caller)
    if is_volume_id(name):
        found = [cinder.volume(name)]
    else:
        found = cinder.volumes(everybody=caller.identity.is_admin, name=name)
    return _views(backend, [only(name, found)])[0]


def only(name: str, found: list[CinderVolume]) -> CinderVolume:
    """The one volume in ``found``.

    :raises NotFound: when there is none
    :raises Conflict: naming some of them, when there are several
    """
    if not found:
        raise NotFound(f"there is no volume `{name}`")
    if len(found) > 1:
        ids = ", ".join(f"`{one.id}` of project `{one.project}`" for one in found[:5])
        raise Conflict(f"`{name}` is the name of {len(found)} volumes, say one of {ids}")
    return found[0]


def _views(backend: Backend, volumes: Iterable[CinderVolume]) -> list[VolumeView]:
    keys, run = backend.store.keys, backend.store.run
    tiers = run(operations.TIERS.read_all(keys))
    records = run(operations.RECORDS.read_all(keys))
    return [VolumeView(one, records.get(one.id), one.type if one.type in tiers else "") for one in volumes]
