"""Attachments and detachments of volumes: their steps, which a request or an actor host runs.

Cinder makes an export, the konnector of a node attaches it, then Cinder records that the volume is in use.

* The steps of an attachment are a table (:class:`AttachStep`).  The request that submitted it runs all of them: only it
  has the caller's rights, the connection and the passphrase, which are not stored.
* A process that continues after the end of that request completes the attachment if the konnector has the volume.
  Otherwise it is undone, at the konnector first: the export of a volume ends only after its last user.  Until the
  konnector has detached the volume, its attachment stays in Cinder, which refuses other attachments, and the operation
  names the user of the device.
* A detachment is repeated until the konnector has detached the volume, or has named the user of its device.  With
  ``force`` it does not wait for a konnector that does not answer: Cinder deletes the attachment, if its back end then
  ends the machine's access to the volume, or the caller confirmed that the machine is off.  The konnector is notified
  when it is back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.records import GIB, IN_USE
from sluice_volumes.konnector_client import Konnector, KonnectorAway
from sluice_volumes.messages import (
    CONNECTION_TYPE,
    FENCED,
    FENCING,
    FORCE,
    KONNECTOR_TOLD,
    MACHINE_IS_GONE,
    VolumeOperation,
    VolumeRecord,
)
from sluice_volumes.outcomes import ASKED, Claim, Outcome, done, failed

log = logging.getLogger(__name__)

#: Steps of an attachment in an operation: the volume's stack is known, Cinder has made an export.
CHOSEN: Final = "chosen"
EXPORTED: Final = "exported"
#: The state of a complete attachment in Cinder, and in a konnector.
ATTACHED: Final = "attached"
#: A konnector's state of a volume that it took over, and does not attach before a confirmation.
WAITING: Final = "waiting"
#: In the data of an attachment that is being undone: the reason.
UNDONE_FOR: Final = "undone_for"

#: Node → its konnector; raises PeerError for a node without one.
Konnectors = Callable[[str], Konnector]


@dataclass(frozen=True, slots=True)
class Request:
    """Properties of the request that submitted an operation.

    :param cinder: with the rights of its caller
    :param size: GiB that the volume has in Cinder
    :param fix_stack: fixes the stack in the record of a volume that is to be attached, and returns the passphrase of an
        encrypted one, empty for others
    """

    cinder: Cinder
    size: int = 0
    fix_stack: Callable[[Claim], str] = lambda claim: ""


@dataclass(slots=True)
class _Attachment:
    """An attachment in its request, with the results of its steps so far."""

    claim: Claim
    request: Request
    konnector: Konnector
    #: Whether this attachment fixes the stack.
    first: bool
    secret: str = field(default="", repr=False)
    connector: Mapping[str, Any] = field(default_factory=dict)
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def export(self) -> str:
        return str(self.claim.operation.data["export"])

    @property
    def record(self) -> VolumeRecord:
        """The record, which exists as soon as the stack is fixed."""
        assert self.claim.record is not None
        return self.claim.record


@dataclass(frozen=True, slots=True)
class AttachStep:
    """A step of an attachment.

    :param name: the operation's step when this step is done; empty: nothing is written before the next step
    :param do: runs it, and returns additions to the operation's data
    :param give_up: returns the outcome when Cinder or the konnector refuses or does not answer; None: the caller
        receives the error
    """

    name: str
    do: Callable[[_Attachment], Mapping[str, Any]]
    give_up: Callable[[_Attachment, CallerError | PeerError], Outcome | None]


class Attachments:
    """Runs the steps of attach and detach operations.

    :param cinder: with the rights of the service user
    :param now: unix seconds
    """

    def __init__(self, cinder: Cinder, konnectors: Konnectors, now: Callable[[], float]) -> None:
        self._cinder = cinder
        self._konnectors = konnectors
        self._now = now
        self._attach_steps = (
            AttachStep(CHOSEN, self._choose, self._unfix_unanswered),
            AttachStep(EXPORTED, self._export, self._unfix_refused),
            AttachStep("", self._connect, self._undo_refused),
        )

    def attach(self, claim: Claim, request: Request) -> Outcome:
        """Run all steps of an attachment, for the request that submitted it."""
        konnector = self._konnectors(str(claim.operation.data["node"]))
        first = claim.record is not None and not claim.record.fixed
        attachment = _Attachment(claim, request, konnector, first)
        for step in self._attach_steps:
            try:
                data = step.do(attachment)
            except (CallerError, PeerError) as error:
                outcome = step.give_up(attachment, error)
                if outcome is None:
                    raise
                return outcome
            if step.name:
                claim.save(step.name, **data)
        return self._complete_attach(claim.operation, claim.record, attachment.shown)

    def advance_attach(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Finish an unclaimed attach: complete it if the konnector serves the volume, or undo it."""
        konnector = self._konnectors(str(operation.data["node"]))
        try:
            shown = konnector.volume(operation.volume)
        except NotFound:
            why = f": {operation.reason}" if operation.reason else ""
            return self._undo_attach(operation, record, f"it was interrupted before the konnector had the volume{why}")
        if shown.get("state") == WAITING:
            return Outcome(operation, record)
        if shown.get("state") != ATTACHED or shown.get("attachment") != operation.data.get("attachment"):
            return self._undo_attach(operation, record, f"the konnector has it as `{shown.get('state')}`")
        return self._complete_attach(operation, record, shown)

    # -- the steps of an attachment

    def _choose(self, attachment: _Attachment) -> Mapping[str, Any]:
        """Fix the volume's stack, before the request to the konnector."""
        attachment.secret = attachment.request.fix_stack(attachment.claim)
        keywords = [step.keyword for step in attachment.record.stack]
        attachment.connector = attachment.konnector.connector(attachment.export, keywords)
        return {"first": attachment.first}

    def _export(self, attachment: _Attachment) -> Mapping[str, Any]:
        """Let Cinder make an export for the node."""
        made = attachment.request.cinder.attach(attachment.record.id, attachment.connector)
        attachment.connection = made.connection
        return {"attachment": made.id}

    def _connect(self, attachment: _Attachment) -> Mapping[str, Any]:
        """Let the konnector attach the export; a header may be created until one is known to exist."""
        record = attachment.record
        wanted = {
            "account": record.account,
            "project": record.project,
            "name": record.name,
            "attachment": attachment.claim.operation.data["attachment"],
            "connection": dict(attachment.connection),
            "export": attachment.export,
            "stack": [step.to_data() for step in record.stack],
            "fresh": attachment.first or (record.is_encrypted and not record.header),
            **({"size": record.size * GIB} if record.size else {}),
            **({"secret": attachment.secret} if attachment.secret else {}),
        }
        attachment.shown = attachment.konnector.attach(record.id, wanted)
        return {}

    def _complete_attach(
        self, operation: VolumeOperation, record: VolumeRecord | None, shown: Mapping[str, Any]
    ) -> Outcome:
        """Complete the attachment in Cinder, and record where the volume is attached.

        :param shown: the konnector's answer about the volume
        """
        attachment, volume = str(operation.data["attachment"]), self._cinder.volume(operation.volume)
        if volume.status != IN_USE:
            self._cinder.complete_attachment(attachment)
        seen = int(shown.get("size") or 0)
        header = max(volume.size * GIB - seen, 0) if seen else 0
        node = str(operation.data["node"])
        attached = record and replace(record, node=node, attachment=attachment, header=header, pool=volume.pool)
        return Outcome(done(operation, self._now(), device=str(shown.get("device") or "")), attached)

    # -- attachments that are undone

    def _unfix_unanswered(self, attachment: _Attachment, error: CallerError | PeerError) -> None:
        """Without an answer the operation has failed: no attachment was requested yet."""
        if isinstance(error, PeerError):
            _unfix(attachment)
            attachment.claim.fail(str(error))

    def _unfix_refused(self, attachment: _Attachment, error: CallerError | PeerError) -> None:
        if isinstance(error, CallerError):
            _unfix(attachment)

    def _undo_refused(self, attachment: _Attachment, error: CallerError | PeerError) -> Outcome:
        """Undo it, unless the konnector may have the volume, which is checked next."""
        operation, record = attachment.claim.operation, attachment.claim.record
        if isinstance(error, CallerError):
            return self._undo_attach(operation, record, str(error))
        return Outcome(replace(operation, reason=str(error)), record)

    def _undo_attach(self, operation: VolumeOperation, record: VolumeRecord | None, reason: str) -> Outcome:
        """Detach the volume at the konnector, delete its attachment in Cinder, and fail the operation with ``reason``.

        A stack that was chosen for it is chosen again next time if the konnector never had the volume.
        """
        konnector, never = self._konnectors(str(operation.data["node"])), False
        reason = str(operation.data.get(UNDONE_FOR) or reason)
        try:
            konnector.detach(operation.volume)
        except NotFound:
            never = UNDONE_FOR not in operation.data
        except Conflict as error:  # its device is in use: repeated until it is unused
            said = {**operation.data, UNDONE_FOR: reason}
            return Outcome(replace(operation, data=said, reason=f"{reason}; it is not undone yet: {error}"), record)
        for made in self._cinder.attachments(operation.volume):
            if made.id == operation.data.get("attachment") or made.status != ATTACHED:
                self._cinder.delete_attachment(made.id)
        if never and record is not None and operation.data.get("first"):
            record = record.unfixed()
        return Outcome(failed(operation, self._now(), reason), record)

    def shows_size(self, record: VolumeRecord) -> bool:
        """Let the konnector show the new size of a volume; return False when its user sees it after the next attach."""
        try:
            return self._konnectors(record.node).resize(record.id, record.size * GIB)
        except (CallerError, PeerError) as error:
            log.warning("volume `%s` shows its size after the next attach: %s", record.id, error)
            return False

    # -- detachments

    def detach(self, claim: Claim, request: Request) -> Outcome:
        """Detach a volume for the request that submitted it; unchanged when the konnector or Cinder does not answer."""
        claim.save(ASKED)
        try:
            return self.advance_detach(claim.operation, claim.record, request.cinder)
        except PeerError as error:
            log.warning("detaching volume `%s` waits: %s", claim.operation.volume, error)
            return Outcome(claim.operation, claim.record)

    def advance_detach(
        self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder | None = None
    ) -> Outcome:
        """Detach a volume at its konnector, then delete its attachment in Cinder.

        :param cinder: with the rights for this; None: those of the service user
        :raises PeerError: when the konnector or Cinder does not answer: the caller repeats this
        """
        cinder = cinder or self._cinder
        try:
            self._konnectors(str(operation.data["node"])).detach(operation.volume)
        except NotFound:  # the volume is detached already
            pass
        except Conflict as error:
            return Outcome(failed(operation, self._now(), str(error)), record)
        except KonnectorAway as error:
            if not operation.data.get(FORCE):
                raise
            return self._detach_by_force(operation, record, cinder, str(error))
        return self._complete_detach(operation, record, cinder)

    def _detach_by_force(
        self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder, away: str
    ) -> Outcome:
        """
        :param away: the reason why the konnector is not called
        """
        kind, attachment = str(operation.data[CONNECTION_TYPE]), operation.data["attachment"]
        fenced = not attachment or kind in FENCING
        if not fenced and not operation.data.get(MACHINE_IS_GONE):
            reason = (
                f"{away}; and with a connection of type `{kind}` its machine could write to the volume although the "
                f"attachment is deleted, so say `{MACHINE_IS_GONE}` when it is off and will not use it again"
            )
            return Outcome(failed(operation, self._now(), reason), record)
        said = {**operation.data, FENCED: fenced, KONNECTOR_TOLD: not attachment}
        return self._complete_detach(replace(operation, data=said), record, cinder)

    def _complete_detach(self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder) -> Outcome:
        """Delete the attachment in Cinder of a volume that its konnector has detached.

        :param cinder: with the rights for this
        """
        attachment = str(operation.data["attachment"])
        try:
            if attachment:  # an attach that was undone may not have one yet
                cinder.delete_attachment(attachment)
        except NotFound:
            pass
        except CallerError as error:
            return Outcome(failed(operation, self._now(), str(error)), record)
        return Outcome(done(operation, self._now()), record and replace(record, node="", attachment=""))


def _unfix(attachment: _Attachment) -> None:
    """Let the next attach choose the stack again, if this one was the first and chose it."""
    record = attachment.claim.record
    if attachment.first and record is not None and record.fixed:
        attachment.claim.replace_record(record.unfixed())
