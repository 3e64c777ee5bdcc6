"""Volumes attached to the konnectors of nodes.

Cinder makes an export for the node, its konnector takes it and puts the volume's stack before it, then Cinder is told
that the volume is in use.  The stack is chosen at the first time, and kept in the volume's record before the konnector
hears of it.  Cinder's volume grows before that when it is to be encrypted (:mod:`header_space`).  A volume that may
hold data and has no record is not attached.

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
from sluice_controller.volumes.cinder_access import Caller, caller_cinder, check_node, node_konnector
from sluice_controller.volumes.header_space import add_header_space
from sluice_controller.volumes.ordering import Claim, new_operation
from sluice_controller.volumes.volume_policies import LUKS, choose_stack
from sluice_controller.volumes.volumes import VolumeView
from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_volumes import operations
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.records import AVAILABLE, GIB, CinderAttachment
from sluice_volumes.messages import (
    ATTACH,
    UNDER_WAY,
    VolumeOperation,
    VolumeRecord,
)
from sluice_volumes.outcomes import Outcome

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
    return ordering.submit(backend, operation, lambda claim: _ask_attach(backend, cinder, claim))


def _adopt(backend: Backend, caller: Caller, view: VolumeView) -> None:
    volume, now = view.volume, backend.now()
    account = backend.config.reseller_prefix + volume.project
    record = VolumeRecord(
        volume.id, volume.project, account, volume.name, view.tier, fixed=now, created=now, by=caller.name
    )
    backend.store.run(operations.RECORDS.create(backend.store.keys, record))


def _ask_attach(backend: Backend, cinder: Cinder, claim: Claim) -> Outcome:
    node, export = str(claim.operation.data["node"]), str(claim.operation.data["export"])
    konnector = node_konnector(backend, node)
    first = claim.record is not None and not claim.record.fixed
    try:
        record = _fixed_record(backend, claim)
        secret = _passphrase(backend, record)
        connector = konnector.connector(export, [one.keyword for one in record.stack])
    except PeerError as error:  # no attachment was asked for yet
        _unfix(backend, claim, first)
        claim.fail(str(error))
        raise
    claim.save(CHOSEN, first=first)
    try:
        attachment = cinder.attach(record.id, connector)
    except CallerError:
        _unfix(backend, claim, first)
        raise
    claim.save(EXPORTED, attachment=attachment.id)
    attachments = ordering.finisher(backend).attachments
    try:
        shown = konnector.attach(record.id, _wanted(record, attachment, export, first, secret))
    except CallerError as error:
        return attachments.undo_attach(claim.operation, record, str(error))
    except PeerError as error:  # it may have the volume: that is found out next
        return Outcome(replace(claim.operation, reason=str(error)), record)
    return attachments.complete_attach(claim.operation, record, shown)


def _fixed_record(backend: Backend, claim: Claim) -> VolumeRecord:
    """The record with the stack that the volume has from now on."""
    record = claim.record
    if record is None:
        raise Conflict("the volume was deleted meanwhile")
    if record.fixed:
        return record
    stack = choose_stack(backend, record)
    secret = ""
    if _is_encrypted(stack):
        secret = volume_keys.active_key(backend.config)
        record = add_header_space(backend, record)
    found = replace(record, stack=stack, fixed=backend.now(), secret=secret)
    if not backend.store.run(operations.RECORDS.replace(backend.store.keys, record, found)):
        raise Conflict("somebody else attaches the volume right now")
    claim.record = found
    return found


def _unfix(backend: Backend, claim: Claim, first: bool) -> None:
    """Have the stack chosen anew by the next attach, if this one was the first and chose it."""
    if first and claim.record is not None and claim.record.fixed:
        backend.store.run(operations.RECORDS.replace(backend.store.keys, claim.record, claim.record.unfixed()))


def _is_encrypted(stack: tuple[Any, ...]) -> bool:
    return any(one.keyword == LUKS for one in stack)


def _passphrase(backend: Backend, record: VolumeRecord) -> str:
    """Of an encrypted volume; empty for another.

    :raises PeerError: when its key is not there now
    """
    if not _is_encrypted(record.stack):
        return ""
    return volume_keys.passphrase(backend.config, record.secret, record.id)


def _wanted(
    record: VolumeRecord, attachment: CinderAttachment, export: str, first: bool, secret: str
) -> Mapping[str, Any]:
    """What the konnector is told; a header may be made until one is known to be there."""
    return {
        "account": record.account,
        "project": record.project,
        "name": record.name,
        "attachment": attachment.id,
        "connection": dict(attachment.connection),
        "export": export,
        "stack": [one.to_data() for one in record.stack],
        "fresh": first or (_is_encrypted(record.stack) and not record.header),
        **({"size": record.size * GIB} if record.size else {}),
        **({"secret": secret} if secret else {}),
    }


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """How a volume is used.

    :param rates: that its konnector holds it to, by parameter; None: it is not attached, or nobody answers
    :param fault: what is wrong with it, as its konnector says, or what an operation on it waits for; empty: nothing
    :param data_path: what its users' requests pass before its filters, as its konnector says; empty: it is not known
    """

    rates: Mapping[str, float] | None = None
    fault: str = ""
    data_path: str = ""


def read_use(backend: Backend, record: VolumeRecord) -> VolumeUse:
    """How a volume is used now."""
    if not record.node:
        known = backend.store.run(operations.JOBS.read_all(backend.store.keys)).values()
        waiting = (one for one in known if one.volume == record.id and one.state == UNDER_WAY)
        return VolumeUse(None, next((one.reason for one in waiting), ""))
    try:
        shown = node_konnector(backend, record.node).volume(record.id)
    except (CallerError, PeerError) as error:
        log.warning("how volume `%s` is used is not known: %s", record.id, error)
        return VolumeUse(None, str(error))
    found, said = shown.get("limits_in_force"), [str(shown.get(name) or "") for name in ("fault", "data_path")]
    if not isinstance(found, Mapping):
        return VolumeUse(None, *said)
    rates = {name: float(rate) for name, rate in found.items() if isinstance(rate, int | float) and rate}
    return VolumeUse(rates, *said)
