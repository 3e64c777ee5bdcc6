"""Volumes detached from the konnectors of nodes, by force where a konnector does not answer any more."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import ordering
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, check_node, service_cinder
from sluice_controller.volumes.ordering import Claim, new_operation
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_volumes import operations
from sluice_volumes.attachments import ATTACHED
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.messages import (
    ATTACH,
    CONNECTION_TYPE,
    DETACH,
    FORCE,
    MACHINE_IS_GONE,
    UNDER_WAY,
    VolumeOperation,
    VolumeRecord,
)
from sluice_volumes.outcomes import ASKED, Outcome, failed

log = logging.getLogger(__name__)

_BUSY: Final = "operation `{}` is being worked at, try again in a moment"


@dataclass(frozen=True, slots=True)
class DetachRequest:
    """``force``: also when the konnector does not answer; ``machine_is_gone``: its machine writes no more."""

    force: bool
    machine_is_gone: bool

    @classmethod
    def read(cls, data: Any) -> DetachRequest:
        """The one in a body.

        :raises CallerError: when it makes no sense
        """
        body = Body(data, FORCE, MACHINE_IS_GONE)
        found = cls(body.flag(FORCE, False), body.flag(MACHINE_IS_GONE, False))
        if found.machine_is_gone and not found.force:
            raise CallerError(f"`{MACHINE_IS_GONE}` without `{FORCE}`: only a detachment by force needs it")
        return found


def detach(
    backend: Backend, caller: Caller, view: VolumeView, wanted: DetachRequest, may_force: bool
) -> VolumeOperation:
    """Have a volume detached from its node; with ``force`` also when its konnector does not answer.

    An attachment that waits for its konnector is given up by ``force``: the konnector may have the volume, so it is
    detached as one that has it.

    :param may_force: whether the caller may say ``force``
    :raises Forbidden: when the caller may not
    :raises NotFound: when its node is no more
    :raises Conflict: when it is not attached through Sluice, its node has no konnector now, or somebody holds its
        device, with who it is; with ``force``, when its machine might go on to write
    """
    if wanted.force and not may_force:
        raise Forbidden(f"`{FORCE}` is an administrator's to say")
    record = view.record and _with_attachment_under_way(backend, view.record, wanted.force)
    if record is None or not record.node:
        raise Conflict("the volume is not attached through Sluice")
    cinder = caller_cinder(backend, caller)
    given: dict[str, Any] = {"node": record.node, "attachment": record.attachment}
    if wanted.force:
        kind = _connection_type(backend, record.attachment)
        given |= {FORCE: True, CONNECTION_TYPE: kind, MACHINE_IS_GONE: wanted.machine_is_gone}
        waiting = _waiting(backend, record.id, DETACH)
        if waiting is not None:
            return _force(backend, waiting, given)
    else:
        check_node(backend, record.node)
    operation = new_operation(backend, DETACH, view.volume.project, caller.name, view.volume.id, given)
    return ordering.submit(backend, operation, lambda claim: _ask_detach(backend, cinder, claim))


def _connection_type(backend: Backend, attachment: str) -> str:
    """How the machine of an attachment reaches the volume; empty when Cinder has no such attachment."""
    try:
        found = service_cinder(backend).attachment(attachment)
    except NotFound:
        return ""
    return str(found.connection.get("driver_volume_type", ""))


def _waiting(backend: Backend, volume: str, what: str) -> VolumeOperation | None:
    """The operation of that kind that is under way on a volume, as one does that waits for its konnector."""
    known = backend.store.run(operations.JOBS.read_all(backend.store.keys)).values()
    return next((one for one in known if (one.volume, one.what, one.state) == (volume, what, UNDER_WAY)), None)


def _with_attachment_under_way(backend: Backend, record: VolumeRecord, force: bool) -> VolumeRecord:
    """The record of a volume; with ``force`` one under attachment counts as attached from now on.

    :raises Conflict: when it is under attachment, and there is no ``force``, or somebody works at it
    """
    waiting = None if record.node else _waiting(backend, record.id, ATTACH)
    if waiting is None:
        return record
    node = str(waiting.data["node"])
    if not force:
        raise Conflict(
            f"operation `{waiting.id}` attaches it to node `{node}`; an administrator gives that up by `{FORCE}`"
        )
    claim = ordering.claim_operation(backend, waiting)
    if claim is None:
        raise Conflict(_BUSY.format(waiting.id))
    found = replace(record, node=node, attachment=_attachment(backend, waiting))
    claim.save_outcome(Outcome(failed(claim.operation, backend.now(), f"it was given up by `{FORCE}`"), found))
    return found


def _attachment(backend: Backend, waiting: VolumeOperation) -> str:
    """Cinder's id of what an attachment has made there; empty when it has not come so far."""
    known = waiting.data.get("attachment")
    if known:
        return str(known)
    made = service_cinder(backend).attachments(waiting.volume)
    return next((one.id for one in made if one.status != ATTACHED), "")


def _force(backend: Backend, waiting: VolumeOperation, given: Mapping[str, Any]) -> VolumeOperation:
    """Have a detachment wait no longer.

    :raises Conflict: when somebody works at it
    """
    forced = replace(waiting, data={**waiting.data, **given})
    free = operations.is_free(waiting, backend.now())
    if not free or not backend.store.run(operations.JOBS.replace(backend.store.keys, waiting, forced)):
        raise Conflict(_BUSY.format(waiting.id))
    return ordering.advance(backend, forced)


def _ask_detach(backend: Backend, cinder: Cinder, claim: Claim) -> Outcome:
    claim.save(ASKED)
    try:
        return ordering.finisher(backend).attachments.detach(claim.operation, claim.record, cinder)
    except PeerError as error:
        log.warning("detaching volume `%s` waits: %s", claim.operation.volume, error)
        return Outcome(claim.operation, claim.record)
