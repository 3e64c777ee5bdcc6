"""Changes of volumes: each is an operation that is sent to Cinder with the rights of the caller."""

from __future__ import annotations

from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.config import KEYSTONE
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import ordering, tiers
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, service_cinder
from sluice_controller.volumes.ordering import new_operation
from sluice_controller.volumes.tiers import read_demands, read_size
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_volumes import operations
from sluice_volumes.attachments import Request
from sluice_volumes.cinder.records import CinderSnapshot
from sluice_volumes.messages import (
    CREATE,
    DELETE,
    DELETE_SNAPSHOT,
    EXTEND,
    RETYPE,
    SNAPSHOT,
    VolumeOperation,
)
from sluice_volumes.tiers import DEMANDS, Demands

#: The maximum length of a name in Cinder.
LONGEST_NAME: Final = 255


def create(backend: Backend, caller: Caller, data: Any, key: str = "") -> VolumeOperation:
    """Create a volume in the caller's project.

    :param key: the text that identifies this request; empty without one
    :raises CallerError: when the body is not valid
    :raises Conflict: when no tier meets the demands, or a quota is exceeded
    """
    body = Body(data, "name", "size", "tier", "project", *DEMANDS)
    name = _read_name(body)
    size = read_size(body)
    project = _own_project(backend, caller, body)
    _check_class(body)
    tier = _find_tier(backend, body, size)
    given = {"name": name, "size": size, "tier": tier}
    request = Request(caller_cinder(backend, caller))
    return ordering.submit(backend, new_operation(backend, CREATE, project, caller.name, "", given, key), request)


def _read_name(body: Body) -> str:
    """A name in Cinder's form, empty without one."""
    name = body.text("name", "", LONGEST_NAME)
    if name != name.strip():
        raise CallerError(f"`name` is `{name}`, expected no blanks around it: cinder cuts them off")
    return name


def _own_project(backend: Backend, caller: Caller, body: Body) -> str:
    own = caller.identity.project_id
    said = body.text("project", own)
    if backend.config.auth == KEYSTONE and said not in (own, caller.identity.project_name):
        raise CallerError(
            f"`project` is `{said}`, expected `{caller.identity.project_name or own}`: cinder creates volumes in the "
            "project of the token"
        )
    return own


def read_tier_or_demands(data: Any) -> Body:
    """Read a body with the tier of a volume, or the demands on it.

    :raises CallerError: when it is not valid
    """
    body = Body(data, "tier", *DEMANDS)
    if not body.has("tier") and not any(body.has(one) for one in DEMANDS):
        raise CallerError(f"`tier` is missing, expected a tier or some of {', '.join(DEMANDS)}")
    _check_class(body)
    return body


def _check_class(body: Body) -> None:
    read_demands(body)
    demanded = [one for one in DEMANDS if body.has(one)]
    if body.has("tier") and demanded:
        raise CallerError(f"both `tier` and `{demanded[0]}` are given, expected a tier or demands")
    if body.has("tier"):
        body.text("tier")


def _find_tier(backend: Backend, body: Body, size: int) -> str:
    """The name of the tier, which is that of a volume type; empty: Cinder's default."""
    if not body.has("tier"):
        demanded = any(body.has(one) for one in DEMANDS)
        return tiers.cheapest(backend, read_demands(body, size)).tier.name if demanded else ""
    name = body.text("tier")
    found = tiers.find(backend, name)
    if found.state == tiers.GONE:
        raise Conflict(
            f"the volume type of tier `{name}` is gone from cinder, PUT /volumes/tiers/{name} creates it again"
        )
    return name


def extend(backend: Backend, caller: Caller, view: VolumeView, size: int) -> VolumeOperation:
    """Extend a volume.

    :param size: in GiB
    :raises CallerError: when it is not larger
    """
    if size <= view.size:
        raise CallerError(f"`size` is {size}, expected more than the {view.size} GiB that the volume has")
    return _submit(backend, caller, EXTEND, view, size=size)


def retype(backend: Backend, caller: Caller, view: VolumeView, wanted: Body) -> VolumeOperation:
    """Change the tier of a volume without moving it.

    :param wanted: a result of :func:`read_tier_or_demands`
    :raises Conflict: when its pool does not meet the tier: the volume would have to move
    """
    tier = _find_tier(backend, wanted, view.volume.size)
    _check_pool(backend, view, tier)
    return _submit(backend, caller, RETYPE, view, tier=tier)


def _check_pool(backend: Backend, view: VolumeView, tier: str) -> None:
    pool = service_cinder(backend).volume(view.volume.id).pool
    wanted = Demands.of_tier(backend.store.run(operations.TIERS.read_all(backend.store.keys))[tier])
    meeting = [one.name for one in tiers.KnownPools.read(backend).meeting(wanted)]
    if pool not in meeting:
        there = ", ".join(f"`{one}`" for one in meeting) or "no pool"
        raise Conflict(
            f"the pool of the volume does not meet tier `{tier}`, which {there} does: it would have to be "
            "moved, and Sluice retypes volumes without moving them"
        )


def delete(backend: Backend, caller: Caller, view: VolumeView) -> VolumeOperation:
    """Delete a volume.

    :raises Conflict: when it is attached, or has snapshots
    """
    if view.record is not None and view.record.node:
        raise Conflict(f"the volume is attached to node `{view.record.node}`, detach it first")
    return _submit(backend, caller, DELETE, view)


def snapshots(backend: Backend, caller: Caller, view: VolumeView) -> list[CinderSnapshot]:
    """The snapshots of a volume, newest first."""
    return caller_cinder(backend, caller).snapshots(view.volume.id, everybody=caller.identity.is_admin)


def read_snapshot_name(data: Any) -> str:
    """The name in the body of a new snapshot, which may be empty.

    :raises CallerError: when the body is not valid
    """
    return _read_name(Body(data, "name"))


def create_snapshot(backend: Backend, caller: Caller, view: VolumeView, name: str, key: str = "") -> VolumeOperation:
    """Create a snapshot of a volume, attached or not."""
    return _submit(backend, caller, SNAPSHOT, view, key, name=name)


def delete_snapshot(backend: Backend, caller: Caller, view: VolumeView, snapshot: str) -> VolumeOperation:
    """Delete a snapshot.

    :param snapshot: its id, or its name if only one snapshot has it
    :raises NotFound: when the volume has no such snapshot
    :raises Conflict: when it has several of that name
    """
    known = snapshots(backend, caller, view)
    matching = [one for one in known if snapshot in (one.id, one.name)]
    if not matching:
        raise NotFound(f"volume `{view.volume.id}` has no snapshot `{snapshot}`")
    if len(matching) > 1:
        ids = ", ".join(f"`{one.id}`" for one in matching)
        raise Conflict(f"`{snapshot}` is the name of {len(matching)} snapshots, say one of {ids}")
    return _submit(backend, caller, DELETE_SNAPSHOT, view, snapshot=matching[0].id)


def _submit(
    backend: Backend, caller: Caller, what: str, view: VolumeView, key: str = "", **data: Any
) -> VolumeOperation:
    request = Request(caller_cinder(backend, caller), view.volume.size)
    operation = new_operation(backend, what, view.volume.project, caller.name, view.volume.id, data, key)
    return ordering.submit(backend, operation, request)
