"""Keeps what became of an operation: the record of its volume and what it measured first, then the operation itself.

Whoever dies in between leaves an operation under way, whose next owner finds the record as it is to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation
from sluice_core.store.store import AsyncStore, Store
from sluice_volumes import operations
from sluice_volumes.messages import VolumeOperation, VolumeRecord
from sluice_volumes.outcomes import Outcome


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
