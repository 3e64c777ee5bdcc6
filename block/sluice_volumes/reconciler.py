"""Operations on volumes: how each is asked for, and how what was asked is found done, or found wrong, or is undone.

Theory of operation.

* An operation is written, then Cinder is asked with the rights of whoever ordered it (:meth:`OperationReconciler.ask`),
  then the operation says ``asked``.  From there on :meth:`OperationReconciler.advance` finishes it with our service
  user's rights, for a request or for an actor host.
* Each step reads what Cinder and the konnector have now, so that it may be repeated after any crash.
* One that does not say ``asked`` may have been asked nevertheless, by a process that died between the two.  What is
  made carries the operation's id and is found by it; other changes are seen in the volume.  What cannot be found
  :data:`PATIENCE` seconds after the order was never asked, and has failed.
* A volume or a snapshot that Cinder failed to make is deleted.
* Attachments and detachments: :mod:`sluice_volumes.attachments`; calibrations of pools:
  :mod:`sluice_volumes.pool_measurement`.

But for the claim of a request, which says how far an attachment is, nothing is written here: whoever calls keeps what
is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_volumes import messages
from sluice_volumes.attachments import Attachments, Konnectors, Request
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.records import AVAILABLE, IN_USE, OPERATION, CinderSnapshot, CinderVolume
from sluice_volumes.messages import (
    ATTACH,
    CALIBRATE,
    CREATE,
    DELETE,
    DELETE_SNAPSHOT,
    DETACH,
    EXTEND,
    RETYPE,
    SNAPSHOT,
    UNDER_WAY,
    VolumeOperation,
    VolumeRecord,
)
from sluice_volumes.outcomes import ASKED, Claim, Outcome, done, failed
from sluice_volumes.pool_measurement import PoolMeasurement

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds after which what cannot be found was never asked for.
PATIENCE: Final = 120.0
#: When the user of a volume that has grown sees its size.
NOW: Final = "now"
AFTER_ATTACH: Final = "after the next attach"


class OperationReconciler:
    """Finishes operations.

    :param cinder: with our service user's rights
    :param account_prefix: what makes a project's id an account
    :param now: unix seconds
    """

    def __init__(self, cinder: Cinder, konnectors: Konnectors, account_prefix: str, now: Callable[[], float]) -> None:
        self._cinder = cinder
        self._attachments = Attachments(cinder, konnectors, now)
        self._account_prefix = account_prefix
        self._now = now
        self._steps: Mapping[str, Callable[[VolumeOperation, VolumeRecord | None], Outcome]] = {
            CREATE: self._create,
            EXTEND: self._extend,
            RETYPE: self._retype,
            SNAPSHOT: self._snapshot,
            DELETE_SNAPSHOT: self._delete_snapshot,
            DELETE: self._delete,
            ATTACH: self._attachments.advance_attach,
            DETACH: self._attachments.advance_detach,
            CALIBRATE: PoolMeasurement(cinder, konnectors, now).advance,
        }

    def ask(self, claim: Claim, request: Request) -> Outcome:
        """Ask Cinder and the konnector for a new operation, for the request that ordered it.

        :raises CallerError: when it is refused
        :raises PeerError: when nobody knows whether it was asked for
        """
        if claim.operation.what == ATTACH:
            return self._attachments.attach(claim, request)
        if claim.operation.what == DETACH:
            return self._attachments.detach(claim, request)
        if claim.operation.what == CALIBRATE:
            return self.advance(claim.operation, claim.record)
        return Outcome(ask_cinder(claim.operation, claim.record, request), claim.record)

    def advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Bring an operation as far as Cinder and the konnector are; it is unchanged while Cinder works at it.

        :param record: what is known of its volume
        :raises PeerError: when Cinder or the konnector is away; it is to be repeated then
        """
        if operation.state != UNDER_WAY or operation.what not in self._steps:
            return Outcome(operation, record)
        return self._steps[operation.what](operation, record)

    def try_advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """As :meth:`advance`: failed when it is refused, unchanged while Cinder or the konnector is away."""
        try:
            return self.advance(operation, record)
        except CallerError as error:
            return Outcome(failed(operation, self._now(), str(error)), record)
        except PeerError as error:
            log.warning("operation `%s` on a volume waits: %s", operation.id, error)
            return Outcome(operation, record)

    def _create(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        volume = self._made_volume(operation)
        if volume is None:
            return Outcome(self._unless_patient(operation, "cinder has no such volume"), record)
        operation = replace(operation, volume=volume.id)
        if volume.has_failed:
            self._cinder.delete_volume(volume.id)
            reason = "cinder could not make the volume, most likely since no pool of its type has room for it"
            return Outcome(failed(operation, self._now(), reason), None)
        if not volume.is_settled:
            return Outcome(operation, record)
        made = record or new_record(volume, self._account_prefix, operation, self._now())
        return Outcome(done(operation, self._now()), made)

    def _made_volume(self, operation: VolumeOperation) -> CinderVolume | None:
        if operation.volume:
            return self._volume(operation)
        found = self._cinder.volumes(everybody=True, metadata={OPERATION: operation.id})
        return found[0] if found else None

    def _unless_patient(self, operation: VolumeOperation, reason: str) -> VolumeOperation:
        """The operation as failed, or unchanged while the request that ordered it may still ask Cinder."""
        if operation.step != ASKED and self._now() - operation.created < PATIENCE:
            return operation
        return failed(operation, self._now(), reason)

    def _extend(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        volume = self._volume(operation)
        if volume is None or not volume.is_settled:
            return Outcome(self._gone(operation) if volume is None else operation, record)
        size = int(operation.data["size"])
        if not volume.has_failed and volume.size >= size + (record.header_gib if record else 0):
            if record and record.size:
                record = replace(record, size=size)
            seen = NOW
            if volume.status == IN_USE and not (record and record.node and self._attachments.shows_size(record)):
                seen = AFTER_ATTACH
            return Outcome(done(operation, self._now(), size_seen=seen), record)
        return Outcome(
            self._unless_patient(operation, f"cinder did not extend it, its status is {volume.status}"), record
        )

    def _retype(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        volume = self._volume(operation)
        if volume is None or not volume.is_settled:
            return Outcome(self._gone(operation) if volume is None else operation, record)
        tier = str(operation.data["tier"])
        if not volume.has_failed and volume.type == tier:
            return Outcome(done(operation, self._now()), record and replace(record, tier=tier))
        return Outcome(self._unless_patient(operation, f"cinder left it at type `{volume.type}`"), record)

    def _snapshot(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        snapshot = self._made_snapshot(operation)
        if snapshot is None:
            return Outcome(self._unless_patient(operation, "cinder has no such snapshot"), record)
        if not snapshot.is_settled:
            return Outcome(operation, record)
        if snapshot.status != AVAILABLE:
            self._cinder.delete_snapshot(snapshot.id)
            return Outcome(failed(operation, self._now(), "cinder could not make the snapshot"), record)
        return Outcome(done(operation, self._now(), snapshot=snapshot.id), record)

    def _made_snapshot(self, operation: VolumeOperation) -> CinderSnapshot | None:
        known = self._cinder.snapshots(operation.volume, everybody=True)
        return next((one for one in known if one.metadata.get(OPERATION) == operation.id), None)

    def _delete_snapshot(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        snapshot = _or_none(self._cinder.snapshot, str(operation.data["snapshot"]))
        return self._deletion(operation, snapshot, record, record)

    def _delete(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        return self._deletion(operation, self._volume(operation), record, None)

    def _deletion(
        self,
        operation: VolumeOperation,
        left: CinderVolume | CinderSnapshot | None,
        record: VolumeRecord | None,
        record_after: VolumeRecord | None,
    ) -> Outcome:
        """
        :param left: what was to be deleted, as long as Cinder has it
        """
        if left is None:
            return Outcome(done(operation, self._now()), record_after)
        if left.is_settled:
            reason = f"cinder did not delete it, its status is {left.status}"
            return Outcome(self._unless_patient(operation, reason), record)
        return Outcome(operation, record)

    def _volume(self, operation: VolumeOperation) -> CinderVolume | None:
        return _or_none(self._cinder.volume, operation.volume)

    def _gone(self, operation: VolumeOperation) -> VolumeOperation:
        return failed(operation, self._now(), "the volume is gone")


def ask_cinder(operation: VolumeOperation, record: VolumeRecord | None, request: Request) -> VolumeOperation:
    """Ask Cinder for an operation that is nothing but one request to it; the operation as asked for.

    What is made carries the id of the operation, by which whoever goes on finds it.
    """
    cinder, volume, data = request.cinder, operation.volume, operation.data
    mark = {OPERATION: operation.id}
    match operation.what:
        case messages.CREATE:
            made = cinder.create_volume(data["size"], data["name"], data["tier"], mark)
            operation = replace(operation, volume=made.id, project=made.project or operation.project)
        case messages.EXTEND:
            size = data["size"] + (record.header_gib if record else 0)
            if request.size < size:  # else it has grown already, behind our back
                cinder.extend(volume, size)
        case messages.RETYPE:
            cinder.retype(volume, data["tier"])
        case messages.SNAPSHOT:
            snapshot = cinder.create_snapshot(volume, data["name"], mark)
            operation = replace(operation, data={**data, "snapshot": snapshot.id})
        case messages.DELETE_SNAPSHOT:
            cinder.delete_snapshot(data["snapshot"])
        case messages.DELETE:
            cinder.delete_volume(volume)
    return replace(operation, step=ASKED)


def _or_none(read: Callable[[str], T], name: str) -> T | None:
    """Read something of Cinder's; None when Cinder has nothing of that id."""
    try:
        return read(name)
    except NotFound:
        return None


def new_record(volume: CinderVolume, account_prefix: str, operation: VolumeOperation, now: float) -> VolumeRecord:
    """The record of a volume that was never attached through Sluice."""
    project = volume.project or operation.project
    return VolumeRecord(
        volume.id, project, account_prefix + project, volume.name, str(operation.data.get("tier", "")), created=now,
        by=operation.by,
    )  # fmt: skip
