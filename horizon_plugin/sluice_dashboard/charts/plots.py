"""What is drawn: series of values over time, with marks and thresholds, as JSON for ``plots.js`` and as CSV.

Times are unix seconds.  A value of None is a gap: nothing was measured there, so nothing is drawn.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

Point = tuple[float, float | None]

#: What one can choose, in seconds; the first is shown at first.
RANGES: Final = (600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
STEPS: Final = (0, 1, 10, 60, 600, 3600)
#: Points that a plot shows at most.
_POINTS: Final = 600


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From when to when (unix seconds), and the seconds from point to point."""

    begin: float
    end: float
    step: int

    @classmethod
    def read(cls, query: Mapping[str, Any], now: float | None = None) -> Self:
        """What the URL asks for: ``last`` seconds until now, or ``from`` and ``to``; ``step`` 0 is as fine as fits.

        Whatever is no number there counts as not said.
        """
        now = time.time() if now is None else now
        end = _number(query.get("to")) or now
        begin = _number(query.get("from")) or end - (_number(query.get("last")) or RANGES[0])
        if begin >= end:
            begin = end - RANGES[0]
        finest = (end - begin) / _POINTS
        step = max(int(_number(query.get("step"))), next((one for one in STEPS[1:] if one >= finest), STEPS[-1]))
        return cls(begin, end, step)


def _number(text: Any) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return 0.0
    return value if 0.0 < value < 1e11 else 0.0


@dataclass(frozen=True, slots=True)
class Series:
    """One line; ``unit`` is the API's, as ``bytes_per_second``."""

    label: str
    unit: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened ``at`` a time."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """A level that values are compared with."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn in one picture; with ``stacked`` the series lie on top of each other."""

    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    thresholds: Sequence[Threshold] = ()
    stacked: bool = False
    begin: float = field(default=0.0)
    end: float = field(default=0.0)

    def to_data(self) -> dict[str, Any]:
        """The JSON of it."""
        return asdict(self)

    def to_csv(self) -> str:
        """A line for each time, a column for each series; gaps are empty."""
        columns = [dict(one.points) for one in self.series]
        text = io.StringIO()
        lines = csv.writer(text)
        lines.writerow(["time", *(safe_cell(f"{one.label} ({one.unit})") for one in self.series)])
        for at in sorted(set().union(*columns)) if columns else ():
            moment = datetime.fromtimestamp(at, UTC).isoformat()
            values = (column.get(at) for column in columns)
            lines.writerow([moment, *("" if value is None else f"{value:.6g}" for value in values)])
        return text.getvalue()


def safe_cell(text: str) -> str:
    """``text`` so that a spreadsheet does not take it for a formula: tenants choose names."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
