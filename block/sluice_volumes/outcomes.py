"""The outcome of an operation on a volume, and how it is written.

The record of the volume and the measurements are written first, then the operation itself.  A process that stops in
between leaves an operation in progress, whose next owner finds the final record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation
from sluice_core.store.store import AsyncStore, Store
from sluice_volumes import operations
from sluice_volumes.messages import DONE, FAILED, PoolCalibration, VolumeOperation, VolumeRecord

#: The step of an operation that was requested from Cinder.
ASKED: Final = "asked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The present operation, and the record of its volume; None: no record, or deleted.

    ``calibration`` is a new measurement of a pool.
    """

    operation: VolumeOperation
    record: VolumeRecord | None
    calibration: PoolCalibration | None = None


def done(operation: VolumeOperation, now: float, **more: Any) -> VolumeOperation:
    """Return the operation as succeeded; ``more`` is added to its data."""
    data = {**operation.data, **more}
    return replace(operation, state=DONE, reason="", data=data, ended=now)


def failed(operation: VolumeOperation, now: float, reason: str) -> VolumeOperation:
    """Return the operation as failed."""
    return replace(operation, state=FAILED, reason=reason, ended=now)


class Claim:
    """An operation that a request has claimed, and the record of its volume."""

    def __init__(self, store: Store, now: Callable[[], float], operation: VolumeOperation) -> None:
        self._store = store
        self._now = now
        self.operation = operation
        self.record: VolumeRecord | None = None
        if operation.volume:
            self.record = store.run(operations.RECORDS.read(store.keys, operation.volume))

    def save(self, step: str, **data: Any) -> VolumeOperation:
        """Write the progress before the next request; ``data`` is added to its data.

        :raises PeerError: when the claim was lost: another process continues
        """
        saved = replace(self.operation, step=step, data={**self.operation.data, **data})
        if not self._store.run(operations.JOBS.replace(self._store.keys, self.operation, saved)):
            raise PeerError(f"operation `{saved.id}` took too long, and another process continues it now")
        self.operation = saved
        return saved

    def save_outcome(self, outcome: Outcome) -> None:
        """Write the outcome, and release the claim; the operation is not written when the claim was lost."""
        for change in _changes(self._store.keys, self.record, outcome):
            self._store.run(change)
        self._store.run(operations.release(self._store.keys, self.operation, outcome.operation))

    def replace_record(self, record: VolumeRecord) -> bool:
        """Write another record of the volume; return False when another process did."""
        store, known = self._store, self.record
        assert known is not None
        if record != known and not store.run(operations.RECORDS.replace(store.keys, known, record)):
            return False
        self.record = record
        return True

    def fail(self, reason: str) -> None:
        """Write the reason of its failure."""
        self.save_outcome(Outcome(failed(self.operation, self._now(), reason), self.record))

    def release(self) -> None:
        """Release the claim; other processes continue the operation in its present state."""
        self.save_outcome(Outcome(self.operation, self.record))


async def save_outcome_async(
    store: AsyncStore, claimed: VolumeOperation, outcome: Outcome, before: VolumeRecord | None
) -> bool:
    """Write an outcome as :meth:`Claim.save_outcome` does, for asyncio; False when the claim was lost.

    :param before: the former record of the volume
    """
    for change in _changes(store.keys, before, outcome):
        await store.run(change)
    return await store.run(operations.release(store.keys, claimed, outcome.operation))


def _changes(keys: Keys, before: VolumeRecord | None, outcome: Outcome) -> Iterator[Operation[Any]]:
    """Yield the commands that precede that of the operation."""
    change = _change(keys, before, outcome.record)
    if change is not None:
        yield change
    if outcome.calibration is not None:
        yield operations.CALIBRATIONS.write(keys, outcome.calibration)


def _change(keys: Keys, before: VolumeRecord | None, after: VolumeRecord | None) -> Operation[bool] | None:
    """Return the command that changes the record ``before`` to ``after``; None when they are equal."""
    if before == after:
        return None
    if after is None:
        assert before is not None
        return operations.RECORDS.delete(keys, before.id)
    return operations.RECORDS.create(keys, after) if before is None else operations.RECORDS.replace(keys, before, after)
