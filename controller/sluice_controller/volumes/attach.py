"""Volumes attached to the konnectors of nodes, and detached.

Cinder makes an export for the node, its konnector takes it and puts the volume's stack before it, then Cinder is told
that the volume is in use.  The stack is chosen at the first time, and kept in the volume's record before the konnector
hears of it; a volume that may hold data and has no record is not attached.

The connection, which may hold a key, and the passphrase go from here to the konnector, and are kept nowhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import ordering, volume_keys
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, node_konnector, service_cinder
from sluice_controller.volumes.ordering import Claim, new_operation
from sluice_controller.volumes.volume_policies import LUKS, choose_stack
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_core.volumes import operations
from sluice_core.volumes.cinder.adapter import Cinder
from sluice_core.volumes.cinder.records import AVAILABLE, CinderAttachment
from sluice_core.volumes.konnector_client import closest
from sluice_core.volumes.messages import (
    ATTACH,
    CONNECTION_TYPE,
    DETACH,
    FORCE,
    MACHINE_IS_GONE,
    UNDER_WAY,
    VolumeOperation,
    VolumeRecord,
)
from sluice_core.volumes.outcomes import ASKED, Outcome

log = logging.getLogger(__name__)

#: How a konnector shows a volume: as a block device of its machine, or as an NBD socket for QEMU.
EXPORTS: Final = ("block", "nbd")
#: The steps of an attachment: the volume's stack is known, Cinder has made an export.
CHOSEN: Final = "chosen"
EXPORTED: Final = "exported"


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
    _check_node(backend, wanted.node)
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
    return ordering.order(backend, operation, lambda claim: _ask_attach(backend, cinder, claim))


def _check_node(backend: Backend, node: str) -> None:
    reports = {one.node: one for one in backend.store.nodes()}
    with_konnector = [name for name, one in reports.items() if one.konnector]
    if node not in reports:
        raise NotFound(f"there is no node `{node}`, {closest(node, with_konnector)}")
    if node not in with_konnector:
        raise Conflict(f"node `{node}` has no konnector, {closest(node, with_konnector)}")


def _adopt(backend: Backend, caller: Caller, view: VolumeView) -> None:
    volume, now = view.volume, backend.now()
    account = backend.config.reseller_prefix + volume.project
    record = VolumeRecord(
        volume.id, volume.project, account, volume.name, view.tier, fixed=now, created=now, by=caller.name
    )
    backend.store.run(operations.create_record(backend.store.keys, record))


def _ask_attach(backend: Backend, cinder: Cinder, claim: Claim) -> Outcome:
    given = claim.operation.data
    konnector = node_konnector(backend, str(given["node"]))
    try:
        connector = konnector.connector()
    except PeerError as error:  # nothing was asked yet
        claim.fail(str(error))
        raise
    before = claim.record
    record = _fixed_record(backend, claim)
    first = record != before
    claim.save(CHOSEN, first=first)
    try:
        attachment = cinder.attach(record.id, connector)
    except CallerError:
        if before is not None and first:
            backend.store.run(operations.replace_record(backend.store.keys, record, before))
        raise
    claim.save(EXPORTED, attachment=attachment.id)
    attachments = ordering.finisher(backend).attachments
    try:
        shown = konnector.attach(record.id, _wanted(backend, record, attachment, str(given["export"]), first))
    except CallerError as error:
        return attachments.undo_attach(claim.operation, record, str(error))
    except PeerError:  # it may have the volume: that is found out next
        return Outcome(claim.operation, record)
    return attachments.complete_attach(claim.operation, record, shown)


def _fixed_record(backend: Backend, claim: Claim) -> VolumeRecord:
    """The record with the stack that the volume has from now on."""
    record = claim.record
    if record is None:
        raise Conflict("the volume was deleted meanwhile")
    if record.fixed:
        return record
    stack = choose_stack(backend, record)
    secret = volume_keys.active_key(backend.config.volume_key_file) if _is_encrypted(stack) else ""
    found = replace(record, stack=stack, fixed=backend.now(), secret=secret)
    if not backend.store.run(operations.replace_record(backend.store.keys, record, found)):
        raise Conflict("somebody else attaches the volume right now")
    claim.record = found
    return found


def _is_encrypted(stack: tuple[Any, ...]) -> bool:
    return any(one.keyword == LUKS for one in stack)


def _wanted(
    backend: Backend, record: VolumeRecord, attachment: CinderAttachment, export: str, first: bool
) -> Mapping[str, Any]:
    """What the konnector is told; a header may be made until one is known to be there."""
    encrypted = _is_encrypted(record.stack)
    secret = volume_keys.passphrase(backend.config.volume_key_file, record.secret, record.id) if encrypted else ""
    return {
        "account": record.account,
        "project": record.project,
        "name": record.name,
        "attachment": attachment.id,
        "connection": dict(attachment.connection),
        "export": export,
        "stack": [one.to_data() for one in record.stack],
        "fresh": first or (encrypted and not record.header),
        **({"secret": secret} if secret else {}),
    }


def rates_in_force(backend: Backend, record: VolumeRecord) -> dict[str, float] | None:
    """The rates that a volume's konnector holds it to, by parameter; None: it is not attached, or nobody answers."""
    if not record.node:
        return None
    try:
        found = node_konnector(backend, record.node).volume(record.id).get("limits_in_force")
    except (CallerError, PeerError) as error:
        log.warning("the rates of volume `%s` are not known: %s", record.id, error)
        return None
    if not isinstance(found, Mapping):
        return None
    return {name: float(rate) for name, rate in found.items() if isinstance(rate, int | float) and rate}


def detach(backend: Backend, caller: Caller, view: VolumeView, data: Any, may_force: bool) -> VolumeOperation:
    """Have a volume detached from its node; with ``force`` also when its konnector does not answer.

    :param may_force: whether the caller may say ``force``
    :raises CallerError: when the body makes no sense
    :raises NotFound: when its node is no more
    :raises Conflict: when it is not attached through Sluice, its node has no konnector now, or somebody holds its
        device, with who it is; with ``force``, when its machine might go on to write
    """
    body = Body(data, FORCE, MACHINE_IS_GONE)
    force, gone = body.flag(FORCE, False), body.flag(MACHINE_IS_GONE, False)
    if force and not may_force:
        raise Forbidden(f"`{FORCE}` is an administrator's to say")
    if gone and not force:
        raise CallerError(f"`{MACHINE_IS_GONE}` without `{FORCE}`: only a detachment by force needs it")
    record = view.record
    if record is None or not record.node:
        raise Conflict("the volume is not attached through Sluice")
    cinder = caller_cinder(backend, caller)
    given: dict[str, Any] = {"node": record.node, "attachment": record.attachment}
    if force:
        kind = _connection_type(backend, record.attachment)
        given |= {FORCE: True, CONNECTION_TYPE: kind, MACHINE_IS_GONE: gone}
        waiting = _waiting_detachment(backend, record.id)
        if waiting is not None:
            return _force(backend, waiting, given)
    else:
        _check_node(backend, record.node)
    operation = new_operation(backend, DETACH, view.volume.project, caller.name, view.volume.id, given)
    return ordering.order(backend, operation, lambda claim: _ask_detach(backend, cinder, claim))


def _connection_type(backend: Backend, attachment: str) -> str:
    """How the machine of an attachment reaches the volume; empty when Cinder has no such attachment."""
    try:
        found = service_cinder(backend).attachment(attachment)
    except NotFound:
        return ""
    return str(found.connection.get("driver_volume_type", ""))


def _waiting_detachment(backend: Backend, volume: str) -> VolumeOperation | None:
    """The detachment of a volume that waits for its konnector."""
    known = backend.store.run(operations.read_operations(backend.store.keys)).values()
    return next((one for one in known if (one.volume, one.what, one.state) == (volume, DETACH, UNDER_WAY)), None)


def _force(backend: Backend, waiting: VolumeOperation, given: Mapping[str, Any]) -> VolumeOperation:
    """Have a detachment wait no longer.

    :raises Conflict: when somebody works at it
    """
    forced = replace(waiting, data={**waiting.data, **given})
    free = operations.is_free(waiting, backend.now())
    if not free or not backend.store.run(operations.replace_operation(backend.store.keys, waiting, forced)):
        raise Conflict(f"operation `{waiting.id}` is being worked at, try again in a moment")
    return ordering.advance(backend, forced)


def _ask_detach(backend: Backend, cinder: Cinder, claim: Claim) -> Outcome:
    claim.save(ASKED)
    try:
        return ordering.finisher(backend).attachments.detach(claim.operation, claim.record, cinder)
    except PeerError as error:
        log.warning("detaching volume `%s` waits: %s", claim.operation.volume, error)
        return Outcome(claim.operation, claim.record)
