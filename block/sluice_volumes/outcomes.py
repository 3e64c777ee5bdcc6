"""What became of an operation on a volume, and how that is kept.

The record of the volume and what was measured are written first, then the operation itself.  Whoever dies in between
leaves an operation under way, whose next owner finds the record as it is to be.
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

#: The step of an operation that Cinder was asked for.
ASKED: Final = "asked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An operation as it is now, and what we know of its volume; None: nothing, or nothing any more.

    ``calibration`` is what it has measured of a pool just now.
    """

    operation: VolumeOperation
    record: VolumeRecord | None
    calibration: PoolCalibration | None = None


def done(operation: VolumeOperation, now: float, **more: Any) -> VolumeOperation:
    """The operation as one that has succeeded; ``more`` is added to its data."""
    data = {**operation.data, **more}
    return replace(operation, state=DONE, reason="", data=data, ended=now)


def failed(operation: VolumeOperation, now: float, reason: str) -> VolumeOperation:
    """The operation as one that has failed."""
    return replace(operation, state=FAILED, reason=reason, ended=now)


class Claim:
    """An operation that a request works at, and the record of its volume."""

    def __init__(self, store: Store, now: Callable[[], float], operation: VolumeOperation) -> None:
        self._store = store
        self._now = now
        self.operation = operation
        self.record: VolumeRecord | None = None
        if operation.volume:
            self.record = store.run(operations.RECORDS.read(store.keys, operation.volume))

    def save(self, step: str, **data: Any) -> VolumeOperation:
        """Write how far it is, before the next thing is asked; ``data`` is added to its data.

        :raises PeerError: when the claim was lost meanwhile: somebody else goes on
        """
        saved = replace(self.operation, step=step, data={**self.operation.data, **data})
        if not self._store.run(operations.JOBS.replace(self._store.keys, self.operation, saved)):
            raise PeerError(f"operation `{saved.id}` took too long, and somebody else works at it now")
        self.operation = saved
        return saved

    def save_outcome(self, outcome: Outcome) -> None:
        """Write what became of it, and let others go on; nothing of the operation when the claim was lost."""
        for change in _changes(self._store.keys, self.record, outcome):
            self._store.run(change)
        self._store.run(operations.release(self._store.keys, self.operation, outcome.operation))

    def replace_record(self, record: VolumeRecord) -> bool:
        """Write another record of the volume; False when somebody else did."""
        store, known = self._store, self.record
        assert known is not None
        if record != known and not store.run(operations.RECORDS.replace(store.keys, known, record)):
            return False
        self.record = record
        return True

    def fail(self, reason: str) -> None:
        """Write why nothing becomes of it."""
        self.save_outcome(Outcome(failed(self.operation, self._now(), reason), self.record))

    def release(self) -> None:
        """Release the claim; others go on with the operation as it is."""
        self.save_outcome(Outcome(self.operation, self.record))


async def save_outcome_async(
    store: AsyncStore, claimed: VolumeOperation, outcome: Outcome, before: VolumeRecord | None
) -> bool:
    """Write an outcome as :meth:`Claim.save_outcome` does, for asyncio; False when the claim was lost.

    :param before: what was known of the volume
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
    """The command that turns the record ``before`` into ``after``; None when they are the same."""
    if before == after:
        return None
    if after is None:
        assert before is not None
        return operations.RECORDS.delete(keys, before.id)
    return operations.RECORDS.create(keys, after) if before is None else operations.RECORDS.replace(keys, before, after)
