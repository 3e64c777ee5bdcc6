"""The values of the last two minutes, second by second, and the points made from them.

Theory of operation

* A *column* is a series, a row is a second.  A second that has no value is a NaN.
* A row is cleared :data:`_AHEAD` seconds before it is needed, so that it can hold the windows of nodes whose clocks are
  ahead.
* A window of several seconds fills all its seconds, so a metric that is measured each ten seconds has the same weight
  as one that is measured each second.
* A window of more than a minute is *held*: its value counts in each second until the next window is due.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sluice_metric_history.resolutions import FRACTIONS, RESOLUTIONS, Resolution, invert

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]

#: Rows: the minute that is summarised, the next one that begins meanwhile, and the seconds ahead.
ROWS: Final = 180
_AHEAD: Final = 30
#: Seconds of the longest window that fills its own seconds.
LONGEST_WINDOW: Final = 60
#: The share of the values that do not exceed the percentile.
_SHARE: Final = 0.95
_SUMMARY: Final = np.dtype([("low", "<f4"), ("high", "<f4"), ("mean", "<u2"), ("p95", "<u2")])
_LARGEST: Final = float(np.finfo(np.float32).max)


class SampleBuffer:
    """:param columns: the maximum number of series"""

    def __init__(self, columns: int) -> None:
        self._values: Floats = np.full((ROWS, columns), np.nan)
        self._held: Floats = np.full(columns, np.nan)
        self._held_until = np.zeros(columns)

    def put(self, window: int, period: float, columns: Columns, values: Floats) -> None:
        """Store the values of a window that began at ``window``, Unix time.

        :param columns: (values,)
        :param values: (values,) NaN for no value
        """
        bounded = np.clip(values, -_LARGEST, _LARGEST)
        if period > LONGEST_WINDOW:
            # It closed some seconds after its end, and the next one will close as late.
            self._held[columns] = bounded
            self._held_until[columns] = window + 2 * period + LONGEST_WINDOW
            return
        for second in range(window, window + max(1, round(period))):
            self._values[second % ROWS, columns] = bounded

    def finish_second(self, second: int) -> None:
        """Record that all values of ``second`` have arrived; clear the row of a later second."""
        held = np.flatnonzero(self._held_until > second)
        if len(held):
            self._values[second % ROWS, held] = self._held[held]
        self._values[(second + _AHEAD) % ROWS] = np.nan

    def clear(self) -> None:
        """Forget everything."""
        self._values[:] = np.nan
        self._held_until[:] = 0

    def clear_column(self, column: int) -> None:
        """Clear the values of a series, whose column another series uses from now on."""
        self._values[:, column] = np.nan
        self._held_until[column] = 0

    def points(self, resolution: Resolution, at: int) -> list[bytes]:
        """The packed points of all columns in the step of ``resolution`` that begins at ``at``."""
        rows = self._values[[second % ROWS for second in range(at, at + resolution.step)]]
        packed = _values(rows[0]) if resolution.step == 1 else _summaries(rows)
        raw, size = invert(packed), resolution.point_size
        return [raw[place : place + size] for place in range(0, len(raw), size)]


def finest_step(period: float) -> int:
    """The step of the finest resolution that contains a whole window of ``period`` seconds, or the coarsest one."""
    return next(one.step for one in RESOLUTIONS if one.step >= min(period, LONGEST_WINDOW))


def _values(row: Floats) -> bytes:
    return row.astype("<f4").tobytes()


def _summaries(rows: Floats) -> bytes:
    """The packed summary of each column of ``rows`` (seconds, columns)."""
    ordered = np.sort(rows, axis=0)  # NaN last
    count = np.count_nonzero(~np.isnan(ordered), axis=0)
    last = np.maximum(count, 1) - 1
    column = np.arange(rows.shape[1])
    low, high = ordered[0], ordered[last, column]
    p95 = ordered[np.ceil(_SHARE * np.maximum(count, 1)).astype(np.intp) - 1, column]
    mean = np.where(np.isnan(rows), 0.0, rows).sum(axis=0) / np.maximum(count, 1)
    made = np.empty(rows.shape[1], _SUMMARY)
    made["low"], made["high"] = low, high
    way = np.where(high > low, high - low, 1.0)
    for name, value in (("mean", mean), ("p95", p95)):
        fraction = np.nan_to_num((value - low) / way)
        made[name] = np.clip(np.rint(fraction * FRACTIONS), 0, FRACTIONS)
    return made.tobytes()
