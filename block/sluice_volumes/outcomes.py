"""What became of an operation on a volume, and how that is kept.

The record of the volume and what was measured are written first, then the operation itself.  Whoever dies in between
leaves an operation under way, whose next owner finds the record as it is to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

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


def save_outcome(store: Store, claimed: VolumeOperation, outcome: Outcome, before: VolumeRecord | None) -> bool:
    """Write an outcome; False when the claim was lost, and nothing of the operation is written.

    :param before: what was known of the volume
    """
    for change in _changes(store.keys, before, outcome):
        store.run(change)
    return store.run(operations.release(store.keys, claimed, outcome.operation))


async def save_outcome_async(
    store: AsyncStore, claimed: VolumeOperation, outcome: Outcome, before: VolumeRecord | None
) -> bool:
    """As :func:`save_outcome`, for asyncio."""
    for change in _changes(store.keys, before, outcome):
        await store.run(change)
    return await store.run(operations.release(store.keys, claimed, outcome.operation))


def _changes(keys: Keys, before: VolumeRecord | None, outcome: Outcome) -> Iterator[Operation[Any]]:
    """What is written before the operation."""
    change = _change(keys, before, outcome.record)
    if change is not None:
        yield change
    if outcome.calibration is not None:
        yield operations.CALIBRATIONS.write(keys, outcome.calibration)


def _change(keys: Keys, before: VolumeRecord | None, after: VolumeRecord | None) -> Operation[bool] | None:
    """What makes ``after`` of the record ``before``; None when they are the same."""
    if before == after:
        return None
    if after is None:
        assert before is not None
        return operations.RECORDS.delete(keys, before.id)
    return operations.RECORDS.create(keys, after) if before is None else operations.RECORDS.replace(keys, before, after)
