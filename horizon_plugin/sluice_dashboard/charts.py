"""Values as text with units, plots, and the history of metrics as plots.

A plot is series of values over time, with marks and thresholds, as JSON for ``plots.js`` and as CSV.  Times are unix
seconds.  A value of None is a gap: no value was measured there, so no line is drawn.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

from sluice_client import ApiError, Client

#: Units of the API → their symbols; a missing unit has none.
_UNITS: Final = {"bytes_per_second": "B/s", "bytes": "B", "seconds": "s", "per_second": "/s"}
_PREFIXES: Final = ("", "k", "M", "G", "T", "P")
Point = tuple[float, float | None]
#: Selectable ranges in seconds; the first is the default.
RANGES: Final = (600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
STEPS: Final = (0, 1, 10, 60, 600, 3600)
#: Points that a plot shows at most.
_POINTS: Final = 600
#: Column of a history point that holds its mean.
MEAN: Final = 1


def rate(value: float | None) -> str:
    """Bytes per second, as ``12.3 MB/s``; a dash for an unknown value."""
    return "–" if value is None else f"{_scaled(value)}B/s"


def size(value: float | None) -> str:
    """Bytes, as ``12.3 GB``; a dash for an unknown value."""
    return "–" if value is None else f"{_scaled(value)}B"


def quantity(value: float | None, unit: str) -> str:
    """A value in a unit of the API, as ``12.3 MB/s`` for ``bytes_per_second``; a dash for an unknown value."""
    if value is None:
        return "–"
    return f"{_scaled(value)}{_UNITS.get(unit, '')}".rstrip()


def _scaled(value: float) -> str:
    power = 0
    while abs(value) >= 1000 and power < len(_PREFIXES) - 1:
        value /= 1000
        power += 1
    return f"{value:.3g} {_PREFIXES[power]}"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """First and last time (unix seconds), and the seconds between points."""

    begin: float
    end: float
    step: int

    @classmethod
    def read(cls, query: Mapping[str, Any], now: float | None = None) -> Self:
        """Read the range from the URL: ``last`` seconds until now, or ``from`` and ``to``; ``step`` 0 is the finest
        that fits.

        Values that are no numbers are ignored.
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
    """An event ``at`` a time."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Threshold:
    """A level that values are compared with."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The content of one plot; with ``stacked`` the series are stacked."""

    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    thresholds: Sequence[Threshold] = ()
    stacked: bool = False
    begin: float = field(default=0.0)
    end: float = field(default=0.0)

    def to_data(self) -> dict[str, Any]:
        """The plot as JSON."""
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
    """Escape ``text`` so that a spreadsheet does not take it for a formula: tenants choose names."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def fetch_history(client: Client, metric: str, target: str, wanted: TimeRange) -> list[list[Any]]:
    """Return the points of a metric; empty where the API keeps no history of it or does not show it to the user.

    :param target: an account, account/container, account/volume id, node or pool; empty: the cluster
    :raises ClientError: if the API is unreachable
    """
    query = {"from": f"{wanted.begin:.0f}", "to": f"{wanted.end:.0f}", "step": wanted.step}
    try:
        points: list[list[Any]] = client.get(f"/metrics/{metric}/history", target=target, **query)["points"]
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return []
    return points


def column(points: list[list[Any]], number: int) -> list[Point]:
    """One value of each point over time."""
    return [(point[0], point[number]) for point in points]


def mean_series(client: Client, metric: str, target: str, wanted: TimeRange, label: str, unit: str) -> Series:
    """The mean of a metric in each step."""
    return Series(label, unit, column(fetch_history(client, metric, target, wanted), MEAN))
