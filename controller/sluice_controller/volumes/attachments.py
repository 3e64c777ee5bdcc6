"""Attaches volumes to the konnectors of nodes, and detaches them, by force if a konnector does not answer any more.

Cinder creates an export for the node, its konnector connects to it and puts the volume's stack in front, then Cinder
marks the volume as in use.  The stack is chosen at the first attachment, and stored in the volume's record before the
konnector gets it.  Cinder's volume grows before that if it is to be encrypted (:mod:`encryption`).  A volume that may
contain data and has no record is not attached.

The connection, which may contain a key, and the passphrase are sent to the konnector, and stored nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import ordering
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, check_node, service_cinder
from sluice_controller.volumes.encryption import active_key, add_header_space, passphrase
from sluice_controller.volumes.ordering import new_operation
from sluice_controller.volumes.volume_policies import choose_stack
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_volumes import operations
from sluice_volumes.attachments import ATTACHED, Request
from sluice_volumes.cinder.records import AVAILABLE
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
from sluice_volumes.outcomes import Claim, Outcome, failed

#: The forms in which a konnector shows a volume: a block device of its machine, or an NBD socket for QEMU.
EXPORTS: Final = ("block", "nbd")
_BUSY: Final = "operation `{}` is being worked at, try again in a moment"


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """The parameters of an attachment; ``adopt``: its data need no filter, although it has no record."""

    node: str
    export: str
    adopt: bool

    @classmethod
    def read(cls, data: Any) -> AttachRequest:
        """Read the parameters from a body.

        :raises CallerError: when the body is not valid
        """
        body = Body(data, "node", "export", "adopt")
        return cls(body.text("node"), body.one_of("export", EXPORTS, EXPORTS[0]), body.flag("adopt", False))


def attach(
    backend: Backend, caller: Caller, view: VolumeView, wanted: AttachRequest, may_adopt: bool
) -> VolumeOperation:
    """Attach a volume by a node's konnector.

    :param may_adopt: whether the caller may use ``adopt`` for a volume without a record
    :raises CallerError: when the caller may not
    :raises NotFound: when the node does not exist
    :raises Conflict: when the volume is attached already, or may contain data whose filters are not known
    """
    check_node(backend, wanted.node)
    if view.record is not None and view.record.node:
        raise Conflict(f"the volume is attached to node `{view.record.node}` already")
    if view.volume.status != AVAILABLE:
        raise Conflict(f"the volume is `{view.volume.status}` in cinder, expected `{AVAILABLE}`")
    if view.record is None:
        if not wanted.adopt:
            raise Conflict(
                "Sluice did not create this volume, so the filters of its data are not known; if there were none, "
                "an administrator attaches it with `adopt`"
            )
        if not may_adopt:
            raise CallerError("`adopt` is for administrators only")
        _adopt(backend, caller, view)
    cinder = caller_cinder(backend, caller)
    given = {"node": wanted.node, "export": wanted.export}
    operation = new_operation(backend, ATTACH, view.volume.project, caller.name, view.volume.id, given)
    return ordering.submit(backend, operation, Request(cinder, fix_stack=lambda claim: _fix_stack(backend, claim)))


def _adopt(backend: Backend, caller: Caller, view: VolumeView) -> None:
    volume, now = view.volume, backend.now()
    account = backend.config.reseller_prefix + volume.project
    record = VolumeRecord(
        volume.id, volume.project, account, volume.name, view.tier, fixed=now, created=now, by=caller.name
    )
    backend.store.run(operations.RECORDS.create(backend.store.keys, record))


def _fix_stack(backend: Backend, claim: Claim) -> str:
    """Store the volume's stack in its record; return the passphrase if it is encrypted, else an empty text.


    :raises PeerError: when its key cannot be read now
    """
    record = claim.record
    if record is None:
        raise Conflict("the volume was deleted meanwhile")
    if not record.fixed:
        record = replace(record, stack=choose_stack(backend, record))
        if record.is_encrypted:
            record = replace(record, secret=active_key(backend.config))
            record = replace(record, size=add_header_space(backend, claim).size)
        record = replace(record, fixed=backend.now())
        if not claim.replace_record(record):
            raise Conflict("another request attaches the volume now")
    return passphrase(backend.config, record.secret, record.id) if record.is_encrypted else ""


@dataclass(frozen=True, slots=True)
class DetachRequest:
    """``force``: also if the konnector does not answer; ``machine_is_gone``: its machine no longer writes."""

    force: bool
    machine_is_gone: bool

    @classmethod
    def read(cls, data: Any) -> DetachRequest:
        """Read the parameters from a body.

        :raises CallerError: when the body is not valid
        """
        body = Body(data, FORCE, MACHINE_IS_GONE)
        request = cls(body.flag(FORCE, False), body.flag(MACHINE_IS_GONE, False))
        if request.machine_is_gone and not request.force:
            raise CallerError(f"`{MACHINE_IS_GONE}` without `{FORCE}`: only a detachment by force needs it")
        return request


def detach(
    backend: Backend, caller: Caller, view: VolumeView, wanted: DetachRequest, may_force: bool
) -> VolumeOperation:
    """Detach a volume from its node; with ``force`` also if its konnector does not answer.

    ``force`` ends an attachment that waits for its konnector: the konnector may have the volume, so it is
    detached like an attached one.

    :param may_force: whether the caller may use ``force``
    :raises Forbidden: when the caller may not
    :raises NotFound: when its node does not exist any more
    :raises Conflict: when it is not attached through Sluice, its node has no konnector now, or processes use its
        device (the message names them); with ``force``, when its machine might continue to write
    """
    if wanted.force and not may_force:
        raise Forbidden(f"`{FORCE}` is for administrators only")
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
    return ordering.submit(backend, operation, Request(cinder))


def _connection_type(backend: Backend, attachment: str) -> str:
    """The type of an attachment's connection; empty if Cinder has no such attachment."""
    try:
        known = service_cinder(backend).attachment(attachment)
    except NotFound:
        return ""
    return str(known.connection.get("driver_volume_type", ""))


def _waiting(backend: Backend, volume: str, what: str) -> VolumeOperation | None:
    """The running operation of kind ``what`` on a volume that waits for its konnector; None without any."""
    known = backend.store.run(operations.JOBS.read_all(backend.store.keys)).values()
    return next((one for one in known if (one.volume, one.what, one.state) == (volume, what, UNDER_WAY)), None)


def _with_attachment_under_way(backend: Backend, record: VolumeRecord, force: bool) -> VolumeRecord:
    """The record of a volume; with ``force`` a volume that is being attached counts as attached.

    :raises Conflict: when it is being attached without ``force``, or another process advances the operation
    """
    waiting = None if record.node else _waiting(backend, record.id, ATTACH)
    if waiting is None:
        return record
    node = str(waiting.data["node"])
    if not force:
        raise Conflict(
            f"operation `{waiting.id}` attaches it to node `{node}`; an administrator ends that with `{FORCE}`"
        )
    claim = ordering.claim_operation(backend, waiting)
    if claim is None:
        raise Conflict(_BUSY.format(waiting.id))
    found = replace(record, node=node, attachment=_attachment(backend, waiting))
    claim.save_outcome(Outcome(failed(claim.operation, backend.now(), f"it was ended by `{FORCE}`"), found))
    return found


def _attachment(backend: Backend, waiting: VolumeOperation) -> str:
    """Cinder's id of the attachment that the operation created; empty if it has not created one yet."""
    known = waiting.data.get("attachment")
    if known:
        return str(known)
    made = service_cinder(backend).attachments(waiting.volume)
    return next((one.id for one in made if one.status != ATTACHED), "")


def _force(backend: Backend, waiting: VolumeOperation, given: Mapping[str, Any]) -> VolumeOperation:
    """End the wait of a detachment.

    :raises Conflict: when another process advances it
    """
    forced = replace(waiting, data={**waiting.data, **given})
    free = operations.is_free(waiting, backend.now())
    if not free or not backend.store.run(operations.JOBS.replace(backend.store.keys, waiting, forced)):
        raise Conflict(_BUSY.format(waiting.id))
    return ordering.advance(backend, forced)
