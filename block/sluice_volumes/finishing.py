"""Brings operations on volumes to their end: what was asked is found done, or found wrong, or is undone.

Theory of operation.

* An operation is written, then Cinder is asked with the rights of whoever ordered it, then the operation says
  ``asked``.  From there on :meth:`OperationReconciler.advance` finishes it with our service user's rights.
* Each step reads what Cinder and the konnector have now, so that it may be repeated after any crash.
* One that does not say ``asked`` may have been asked nevertheless, by a process that died between the two.  What is
  made carries the operation's id and is found by it; other changes are seen in the volume.  What cannot be found
  :data:`PATIENCE` seconds after the order was never asked, and has failed.
* A volume or a snapshot that Cinder failed to make is deleted.
* Attachments and detachments: :mod:`sluice_volumes.attachments`; calibrations of pools:
  :mod:`sluice_volumes.pool_measurement`.

Nothing is written here: whoever calls keeps what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from sluice_core.errors import NotFound
from sluice_volumes.attachments import Attachments, Konnectors
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
from sluice_volumes.outcomes import ASKED, Outcome, done, failed
from sluice_volumes.pool_measurement import PoolMeasurement

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
        self.attachments = Attachments(cinder, konnectors, now)
        self._account_prefix = account_prefix
        self._now = now
        self._steps: Mapping[str, Callable[[VolumeOperation, VolumeRecord | None], Outcome]] = {
            CREATE: self._create,
            EXTEND: self._extend,
            RETYPE: self._retype,
            SNAPSHOT: self._snapshot,
            DELETE_SNAPSHOT: self._delete_snapshot,
            DELETE: self._delete,
            ATTACH: self.attachments.advance_attach,
            DETACH: self.attachments.advance_detach,
            CALIBRATE: PoolMeasurement(cinder, konnectors, now).advance,
        }

    def advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Bring an operation as far as Cinder and the konnector are; it is unchanged while Cinder works at it.

        :param record: what is known of its volume
        :raises PeerError: when Cinder or the konnector is away; it is to be repeated then
        """
        if operation.state != UNDER_WAY or operation.what not in self._steps:
            return Outcome(operation, record)
        return self._steps[operation.what](operation, record)

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
            try:
                return self._cinder.volume(operation.volume)
            except NotFound:
                return None
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
            if volume.status == IN_USE and not (record and record.node and self.attachments.shows_size(record)):
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
        found = self._made_snapshot(operation)
        if found is None:
            return Outcome(self._unless_patient(operation, "cinder has no such snapshot"), record)
        if not found.is_settled:
            return Outcome(operation, record)
        if found.status != AVAILABLE:
            self._cinder.delete_snapshot(found.id)
            return Outcome(failed(operation, self._now(), "cinder could not make the snapshot"), record)
        return Outcome(done(operation, self._now(), snapshot=found.id), record)

    def _made_snapshot(self, operation: VolumeOperation) -> CinderSnapshot | None:
        known = self._cinder.snapshots(operation.volume, everybody=True)
        return next((one for one in known if one.metadata.get(OPERATION) == operation.id), None)

    def _delete_snapshot(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        try:
            found = self._cinder.snapshot(str(operation.data["snapshot"]))
        except NotFound:
            return Outcome(done(operation, self._now()), record)
        if found.is_settled:
            reason = f"cinder did not delete it, its status is {found.status}"
            return Outcome(self._unless_patient(operation, reason), record)
        return Outcome(operation, record)

    def _delete(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        volume = self._volume(operation)
        if volume is None:
            return Outcome(done(operation, self._now()), None)
        if volume.is_settled:
            reason = f"cinder did not delete it, its status is {volume.status}"
            return Outcome(self._unless_patient(operation, reason), record)
        return Outcome(operation, record)

    def _volume(self, operation: VolumeOperation) -> CinderVolume | None:
        try:
            return self._cinder.volume(operation.volume)
        except NotFound:
            return None

    def _gone(self, operation: VolumeOperation) -> VolumeOperation:
        return failed(operation, self._now(), "the volume is gone")


def new_record(volume: CinderVolume, account_prefix: str, operation: VolumeOperation, now: float) -> VolumeRecord:
    """The record of a volume that was never attached through Sluice."""
    project = volume.project or operation.project
    return VolumeRecord(
        volume.id, project, account_prefix + project, volume.name, str(operation.data.get("tier", "")), created=now,
        by=operation.by,
    )  # fmt: skip
