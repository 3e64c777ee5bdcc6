"""What became of an operation on a volume."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

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
