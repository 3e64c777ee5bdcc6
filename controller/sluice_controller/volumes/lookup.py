"""What a written name of a volume may mean: what Sluice knows first, then what Cinder has."""

from __future__ import annotations

from sluice_controller.catalog.backend import Backend
from sluice_controller.volumes.volumes import is_id
from sluice_core.errors import NotFound
from sluice_core.messages.policies import NAME, VOLUME, Target
from sluice_core.volumes import operations
from sluice_core.volumes.cinder_records import CinderVolume
from sluice_core.volumes.messages import VolumeRecord


def find_volumes(backend: Backend, name: str, project: str = "") -> list[VolumeRecord]:
    """The volumes that are called ``name`` or have this id, as records; those without one have neither stack nor tier.

    :param project: id of the project that they are in; empty: any
    :raises PeerError: when Redis or Cinder is away
    """
    records = backend.store.run(operations.read_records(backend.store.keys))
    known = {one.id: one for one in records.values() if name in (one.id, one.name) and project in ("", one.project)}
    if is_id(name) and known:
        return list(known.values())
    seen = _in_cinder(backend, name, project)
    # a volume may have been renamed or deleted in Cinder since
    kept = {one.id: known.get(one.id) or _record(backend, one) for one in seen}
    return list(kept.values()) if backend.cinder is not None else list(known.values())


def volume_targets(backend: Backend, name: str) -> list[Target]:
    """The volumes that a sentence may mean by ``name``: a name, ``tenant/name``, or an id.

    :raises PeerError: when Redis, Cinder or Keystone is away
    """
    tenant, slash, rest = name.partition("/")
    prefix = backend.config.reseller_prefix
    found: list[VolumeRecord] = []
    if slash and tenant and rest:
        account = backend.native.account(tenant)
        if account.startswith(prefix):
            found = find_volumes(backend, rest, account.removeprefix(prefix))
    # a volume may have a slash in its name
    return [Target(VOLUME, NAME, one.path, label=name) for one in found or find_volumes(backend, name)]


def _in_cinder(backend: Backend, name: str, project: str) -> list[CinderVolume]:
    if backend.cinder is None:
        return []
    if is_id(name):
        try:
            found = [backend.cinder.volume(name)]
        except NotFound:
            return []
    else:
        found = backend.cinder.volumes(everybody=True, name=name)
    return [one for one in found if project in ("", one.project)]


def _record(backend: Backend, volume: CinderVolume) -> VolumeRecord:
    account = backend.config.reseller_prefix + volume.project
    return VolumeRecord(volume.id, volume.project, account, volume.name)
