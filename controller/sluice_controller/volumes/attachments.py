"""Volumes attached to the konnectors of nodes, and detached, by force where a konnector does not answer any more.

Cinder makes an export for the node, its konnector takes it and puts the volume's stack before it, then Cinder is told
that the volume is in use.  The stack is chosen at the first time, and kept in the volume's record before the konnector
hears of it.  Cinder's volume grows before that when it is to be encrypted (:mod:`encryption`).  A volume that may
hold data and has no record is not attached.

The connection, which may hold a key, and the passphrase go from here to the konnector, and are kept nowhere.
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

#: How a konnector shows a volume: as a block device of its machine, or as an NBD socket for QEMU.
EXPORTS: Final = ("block", "nbd")
_BUSY: Final = "operation `{}` is being worked at, try again in a moment"


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """Where a volume is to be attached; ``adopt``: what it holds needs no filter, though it has no record."""

    node: str
    export: str
    adopt: bool

    @classmethod
    def read(cls, data: Any) -> AttachRequest:
        """The one in a body.

        :raises CallerError: when it makes no sense
        """
        body = Body(data, "node", "export", "adopt")
        return cls(body.text("node"), body.one_of("export", EXPORTS, EXPORTS[0]), body.flag("adopt", False))


def attach(
    backend: Backend, caller: Caller, view: VolumeView, wanted: AttachRequest, may_adopt: bool
) -> VolumeOperation:
    """Have a node's konnector attach a volume.

    :param may_adopt: whether the caller may say that what a volume without a record holds needs no filter
    :raises CallerError: when the caller may not
    :raises NotFound: when there is no such node
    :raises Conflict: when the volume is attached already, or may hold data that nobody knows how to read
    """
    check_node(backend, wanted.node)
    if view.record is not None and view.record.node:
        raise Conflict(f"the volume is attached to node `{view.record.node}` already")
    if view.volume.status != AVAILABLE:
        raise Conflict(f"the volume is `{view.volume.status}` in cinder, expected `{AVAILABLE}`")
    if view.record is None:
        if not wanted.adopt:
            raise Conflict(
                "Sluice did not make this volume, so nobody knows what filters its data passed; if they passed none, "
                "an administrator attaches it with `adopt`"
            )
        if not may_adopt:
            raise CallerError("`adopt` is an administrator's to say")
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
    """Fix in the record which stack the volume has from now on; return the passphrase if it is encrypted, else an empty
    text.

    :raises PeerError: when its key is not there now
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
            raise Conflict("somebody else attaches the volume right now")
    return passphrase(backend.config, record.secret, record.id) if record.is_encrypted else ""


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
        request = cls(body.flag(FORCE, False), body.flag(MACHINE_IS_GONE, False))
        if request.machine_is_gone and not request.force:
            raise CallerError(f"`{MACHINE_IS_GONE}` without `{FORCE}`: only a detachment by force needs it")
        return request


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
    return ordering.submit(backend, operation, Request(cinder))


def _connection_type(backend: Backend, attachment: str) -> str:
    """How the machine of an attachment reaches the volume; empty when Cinder has no such attachment."""
    try:
        known = service_cinder(backend).attachment(attachment)
    except NotFound:
        return ""
    return str(known.connection.get("driver_volume_type", ""))


def _waiting(backend: Backend, volume: str, what: str) -> VolumeOperation | None:
    """The operation of that kind that is under way on a volume and waits for its konnector."""
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
    """Make a detachment wait no longer.

    :raises Conflict: when somebody works at it
    """
    forced = replace(waiting, data={**waiting.data, **given})
    free = operations.is_free(waiting, backend.now())
    if not free or not backend.store.run(operations.JOBS.replace(backend.store.keys, waiting, forced)):
        raise Conflict(_BUSY.format(waiting.id))
    return ordering.advance(backend, forced)
