"""Series that lie on top of each other: the largest parts of a whole, and all others together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _

from sluice_client import Client
from sluice_dashboard.charts.history import mean_series
from sluice_dashboard.charts.plots import Point, Series, TimeRange

#: Parts that have a colour of their own.
LARGEST: Final = 7
#: Parts among which they are chosen.
_READ: Final = 500
_UNIT: Final = "bytes_per_second"


@dataclass(frozen=True, slots=True)
class Stack:
    """A whole and its parts.

    :param whole: the metric of the whole, which is at ``target``
    :param metric: that of the parts, which are kept at this ``level`` below ``place``
    :param now: name of a part → what it moves now
    :param labels: name of a part → what it is called, where it is called otherwise
    """

    whole: str
    target: str
    metric: str
    level: str
    place: str
    now: Mapping[str, float]
    labels: Mapping[str, str] = field(default_factory=dict)


def stacked_series(client: Client, stack: Stack, wanted: TimeRange) -> list[Series]:
    """The parts that move most now, each over time, and the rest of the whole as one more."""
    names = part_names(client, stack)
    chosen = largest(names, stack.now)
    parts = [
        mean_series(client, stack.metric, f"{stack.place}/{name}", wanted, stack.labels.get(name, name), _UNIT)
        for name in chosen
    ]
    known = any(one.points for one in parts)
    if known and len(chosen) == len(names):
        return parts
    whole = mean_series(client, stack.whole, stack.target, wanted, str(_("measured")), _UNIT)
    if not known:
        return [whole]
    rest = rest_of(whole.points, [one.points for one in parts])
    return [*parts, Series(str(_("all others")), _UNIT, rest)]


def part_names(client: Client, stack: Stack) -> set[str]:
    """The parts of which a history is kept, and those that move something now: a Prometheus may keep theirs."""
    prefix = f"{stack.metric} {stack.level} {stack.place}/"
    kept: Iterable[Mapping[str, Any]] = client.collection("/metrics/history", "series").list(
        metric=stack.metric, prefix=prefix, limit=_READ
    )
    targets = (one["target"] for one in islice(kept, _READ))
    begin = f"{stack.place}/"
    return {one.removeprefix(begin) for one in targets if one.startswith(begin)} | stack.now.keys()


def largest(names: Iterable[str], now: Mapping[str, float]) -> list[str]:
    """Those of ``names`` that move most, the largest first."""
    return sorted(names, key=lambda name: (-now.get(name, 0.0), name))[:LARGEST]


def rest_of(whole: Sequence[Point], parts: Iterable[Sequence[Point]]) -> list[Point]:
    """What is left of the whole at each time without its ``parts``; None where the whole is not known."""
    sums: dict[float, float] = {}
    for points in parts:
        for at, value in points:
            sums[at] = sums.get(at, 0.0) + (value or 0.0)
    return [(at, None if value is None else max(0.0, value - sums.get(at, 0.0))) for at, value in whole]
