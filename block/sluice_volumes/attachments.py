"""Attachments and detachments of volumes, to their end.

Cinder makes an export, the konnector of a node takes it, then Cinder is told that the volume is in use.

* An attachment is finished when the konnector has the volume.  Otherwise it is undone, at the konnector first: the
  export of a volume ends only after its last user.  Until the konnector has let the volume go, its attachment stays in
  Cinder, which gives the volume to nobody else, and the operation says who holds it.
* A detachment is repeated until the konnector has let the volume go, or has said who holds it.  One with ``force``
  does not wait for a konnector that does not answer: Cinder deletes the attachment, if its back end then ends what the
  machine has of the volume, or somebody said that the machine is gone.  The konnector is told when it comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.records import IN_USE
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
from sluice_volumes.outcomes import Outcome, done, failed

log = logging.getLogger(__name__)

#: What Cinder, and what a konnector, call an attachment that is complete.
ATTACHED: Final = "attached"
#: What a konnector calls one that it took over, and does not attach before it is told that it still holds.
WAITING: Final = "waiting"
GIB: Final = 1 << 30
#: In the data of an attachment that is being undone: why it is.
UNDONE_FOR: Final = "undone_for"

#: Node → its konnector; raises PeerError for a node that has none now.
Konnectors = Callable[[str], Konnector]


class Attachments:
    """Finishes attach and detach operations.

    :param cinder: with our service user's rights
    :param now: unix seconds
    """

    def __init__(self, cinder: Cinder, konnectors: Konnectors, now: Callable[[], float]) -> None:
        self._cinder = cinder
        self._konnectors = konnectors
        self._now = now

    def advance_attach(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Finish an attach that nobody works at: complete it if the konnector serves the volume, or undo it."""
        konnector = self._konnectors(str(operation.data["node"]))
        try:
            shown = konnector.volume(operation.volume)
        except NotFound:
            why = f": {operation.reason}" if operation.reason else ""
            return self.undo_attach(operation, record, f"it was interrupted before the konnector had the volume{why}")
        if shown.get("state") == WAITING:
            return Outcome(operation, record)
        if shown.get("state") != ATTACHED or shown.get("attachment") != operation.data.get("attachment"):
            return self.undo_attach(operation, record, f"the konnector has it as `{shown.get('state')}`")
        return self.complete_attach(operation, record, shown)

    def complete_attach(
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
        found = record and replace(record, node=node, attachment=attachment, header=header, pool=volume.pool)
        return Outcome(done(operation, self._now(), device=str(shown.get("device") or "")), found)

    def undo_attach(self, operation: VolumeOperation, record: VolumeRecord | None, reason: str) -> Outcome:
        """Detach the volume at the konnector, delete its attachment in Cinder, and fail the operation with ``reason``.

        A stack that was chosen for it is chosen anew next time when the konnector never had the volume.
        """
        konnector, never = self._konnectors(str(operation.data["node"])), False
        reason = str(operation.data.get(UNDONE_FOR) or reason)
        try:
            konnector.detach(operation.volume)
        except NotFound:
            never = UNDONE_FOR not in operation.data
        except Conflict as error:  # it is held already: it is tried again until its users are gone
            said = {**operation.data, UNDONE_FOR: reason}
            return Outcome(replace(operation, data=said, reason=f"{reason}; it is not undone yet: {error}"), record)
        for one in self._cinder.attachments(operation.volume):
            if one.id == operation.data.get("attachment") or one.status != ATTACHED:
                self._cinder.delete_attachment(one.id)
        if never and record is not None and operation.data.get("first"):
            record = record.unfixed()
        return Outcome(failed(operation, self._now(), reason), record)

    def shows_size(self, record: VolumeRecord) -> bool:
        """Have the konnector show the new size of a volume; False when its user sees it after the next attach."""
        try:
            return self._konnectors(record.node).resize(record.id, record.size * GIB)
        except (CallerError, PeerError) as error:
            log.warning("volume `%s` shows its size after the next attach: %s", record.id, error)
            return False

    def advance_detach(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        return self.detach(operation, record, self._cinder)

    def detach(self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder) -> Outcome:
        """Detach a volume at its konnector, then delete its attachment in Cinder.

        :param cinder: with whose rights
        :raises PeerError: when the konnector or Cinder does not answer: it is to be repeated
        """
        try:
            self._konnectors(str(operation.data["node"])).detach(operation.volume)
        except NotFound:  # of the volume: it is detached already
            pass
        except Conflict as error:
            return Outcome(failed(operation, self._now(), str(error)), record)
        except KonnectorAway as error:
            if not operation.data.get(FORCE):
                raise
            return self._detach_by_force(operation, record, cinder, str(error))
        return self.complete_detach(operation, record, cinder)

    def _detach_by_force(
        self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder, away: str
    ) -> Outcome:
        """
        :param away: why the konnector is not asked
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
        return self.complete_detach(replace(operation, data=said), record, cinder)

    def complete_detach(self, operation: VolumeOperation, record: VolumeRecord | None, cinder: Cinder) -> Outcome:
        """Delete the attachment in Cinder of a volume that its konnector has detached.

        :param cinder: with whose rights
        """
        attachment = str(operation.data["attachment"])
        try:
            if attachment:  # an attach that was given up may have made none yet
                cinder.delete_attachment(attachment)
        except NotFound:
            pass
        except CallerError as error:
            return Outcome(failed(operation, self._now(), str(error)), record)
        return Outcome(done(operation, self._now()), record and replace(record, node="", attachment=""))
