"""Operations on volumes: their requests, and the checks that complete, fail or undo them.

Theory of operation.

* An operation is written, then Cinder is called with the rights of the submitting user
  (:meth:`OperationReconciler.ask`), then the operation's step is ``asked``.  From there on
  :meth:`OperationReconciler.advance` finishes it with the rights of the service user, for a request or for an actor
  host.
* Each step reads what Cinder and the konnector have now, so that it may be repeated after any crash.
* An operation without the step ``asked`` may have been requested nevertheless, by a process that stopped in between.
  Created objects carry the operation's id and are found by it; other changes are visible in the volume.  A change that
  is not found :data:`PATIENCE` seconds after the submission was never requested, and the operation has failed.
* A volume or a snapshot that Cinder failed to create is deleted.
* Attachments and detachments: :mod:`sluice_volumes.attachments`; calibrations of pools:
  :mod:`sluice_volumes.pool_measurement`.

Except for the claim of a request, which records the progress of an attachment, nothing is written here: the caller
writes the result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.process.logs import log_fields
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

#: Seconds after which a change that is not found was never requested.
PATIENCE: Final = 120.0
#: When the user of an extended volume sees its size.
NOW: Final = "now"
AFTER_ATTACH: Final = "after the next attach"


class OperationReconciler:
    """Finishes operations.

    :param cinder: with the rights of the service user
    :param account_prefix: the prefix of accounts before the project's id
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
        """Send the requests of a new operation to Cinder and the konnector, for the request that submitted it.

        :raises CallerError: when Cinder or the konnector refuses it
        :raises PeerError: when it is unknown whether it was requested
        """
        with log_fields(operation=claim.operation.id):
            if claim.operation.what == ATTACH:
                return self._attachments.attach(claim, request)
            if claim.operation.what == DETACH:
                return self._attachments.detach(claim, request)
            if claim.operation.what == CALIBRATE:
                return self.advance(claim.operation, claim.record)
            return Outcome(ask_cinder(claim.operation, claim.record, request), claim.record)

    def advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Bring an operation to the state of Cinder and the konnector; it is unchanged while Cinder works on it.

        :param record: the record of its volume
        :raises PeerError: when Cinder or the konnector is unreachable; the caller repeats this
        """
        if operation.state != UNDER_WAY or operation.what not in self._steps:
            return Outcome(operation, record)
        return self._steps[operation.what](operation, record)

    def try_advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """As :meth:`advance`: failed when it is refused, unchanged while Cinder or the konnector is unreachable."""
        with log_fields(operation=operation.id):
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
        """Return the operation as failed, or unchanged while its request may still call Cinder."""
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
        :param left: the object to delete, as long as Cinder has it
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
    """Send an operation that consists of one request to Cinder; return the operation as requested.

    Created objects carry the id of the operation, by which another process finds them.
    """
    cinder, volume, data = request.cinder, operation.volume, operation.data
    mark = {OPERATION: operation.id}
    match operation.what:
        case messages.CREATE:
            made = cinder.create_volume(data["size"], data["name"], data["tier"], mark)
            operation = replace(operation, volume=made.id, project=made.project or operation.project)
        case messages.EXTEND:
            size = data["size"] + (record.header_gib if record else 0)
            if request.size < size:  # else it was extended already, without Sluice
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
    """Return the result of ``read``; None when Cinder has no object with that id."""
    try:
        return read(name)
    except NotFound:
        return None


def new_record(volume: CinderVolume, account_prefix: str, operation: VolumeOperation, now: float) -> VolumeRecord:
    """Return the record of a volume that was never attached through Sluice."""
    project = volume.project or operation.project
    return VolumeRecord(
        volume.id, project, account_prefix + project, volume.name, str(operation.data.get("tier", "")), created=now,
        by=operation.by,
    )  # fmt: skip
