"""The series and the range of time of a query.

A range of time is widened to whole steps, and ends with the last complete step.  Without a step, the finest one with
at most :data:`_SHOWN` points is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.registry import metrics
from sluice_controller.validation.names import near_miss
from sluice_controller.validation.parameters import read_time
from sluice_core.describe import MetricInfo
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME
from sluice_metric_history.records import BANDWIDTH_METRICS, OWNED, SeriesKey
from sluice_metric_history.resolutions import RESOLUTIONS, Resolution
from sluice_motif_control.spaces import MOTIF_METRICS
from sluice_volumes.metrics import POOL_METRICS, VOLUME_METRICS


@dataclass(frozen=True, slots=True)
class Selection:
    """A metric, and the series that a target may name; the first one that is kept counts.

    ``target`` is the text of the query.  ``account`` is its owner, and ``level`` its level, for the rule; both are of
    the first series.
    """

    metric: MetricInfo
    target: str
    series: tuple[SeriesKey, ...]

    @property
    def level(self) -> str:
        """The level of the target."""
        return self.series[0].level

    @property
    def path(self) -> str:
        """The path of the target; empty for the cluster and for targets without an owner."""
        return self.series[0].path if self.level in OWNED else ""


def find_metric(backend: Backend, name: str) -> MetricInfo:
    """A metric of the history, by its name or an alias.

    :raises NotFound: when there is none
    """
    known = _NOT_REGISTERED.get(name.upper())
    if known is not None:
        return known
    try:
        return metrics.find(backend, name).info
    except NotFound:
        hint = near_miss(name.upper(), [*_NOT_REGISTERED, *metrics.list_all(backend)])
        raise NotFound(f"no metric `{name}`{hint}") from None


def select(backend: Backend, name: str, target: str, rest: str) -> Selection:
    """The series of metric ``name`` that ``target`` may name, or the rest of a level.

    :param target: empty for the cluster; a project's name stands for its account
    :raises CallerError: when the metric has no such targets
    :raises NotFound: when there is no such metric
    """
    metric = find_metric(backend, name)
    if rest:
        if target:
            raise CallerError(f"`target` is `{target}` beside `rest`, expected one of them")
        if rest not in metric.granularities:
            raise CallerError(f"`rest` is `{rest}`, expected one of {', '.join(_owned(metric))} of `{metric.name}`")
        return Selection(metric, "", (SeriesKey(metric.name, rest, "", rest=True),))
    keys = tuple(SeriesKey(metric.name, *one) for one in _places(backend, metric, target))
    if not keys:
        levels = ", ".join(one for one in (*metric.granularities, CLUSTER) if one not in _NOT_KEPT)
        raise CallerError(f"`target` is `{target}`, but `{metric.name}` is measured per {levels}")
    return Selection(metric, target, keys)


#: Metrics that the registry does not list: those of bandwidth, and those of volumes and motifs, which are optional.
_NOT_REGISTERED: Final = {
    **BANDWIDTH_METRICS,
    **{name: one for one in (*VOLUME_METRICS, *POOL_METRICS, *MOTIF_METRICS) for name in (one.name, *one.aliases)},
}
#: Objects have no history: there are too many.
_NOT_KEPT: Final = ("object",)


def _owned(metric: MetricInfo) -> list[str]:
    return [level for level in metric.granularities if level in OWNED]


def _places(backend: Backend, metric: MetricInfo, target: str) -> Iterator[tuple[str, str]]:
    """The levels and paths that ``target`` may name."""
    if not target:
        yield CLUSTER, ""
        return
    owned = _owned(metric)
    inner = [level for level in (CONTAINER, VOLUME) if level in owned]
    word, slash, name = target.partition("/")
    if inner if slash else TENANT in owned:
        account = backend.native.account(word)
        for level in inner if slash else (TENANT,):
            if not slash or (name and "/" not in name) or level == VOLUME:
                yield level, f"{account}/{name}" if slash else account
    for level in metric.granularities:
        if level not in (*OWNED, *_NOT_KEPT, CLUSTER):
            yield level, target


#: The maximum number of points in an answer.
MOST_POINTS: Final = 3000
#: The length of a range without a beginning, in seconds.
DEFAULT_SECONDS: Final = 600
_SHOWN: Final = 1200
#: The steps to choose from if the query has none.
_STEPS: Final = (1, 10, 60, 300, 600, 1800, 3600)
_KEPT: Final = RESOLUTIONS[-1].seconds
#: Points expire while a query runs: a range that begins at most this many seconds before the oldest point is valid.
_TOLERANCE: Final = 60


@dataclass(frozen=True, slots=True)
class Span:
    """Whole steps of ``step`` seconds from ``begin`` to before ``end``, unix time.

    They are computed from the points of ``resolution``.
    """

    begin: int
    end: int
    step: int
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """The range of a query: Unix times, and the step in seconds, 0 if the query has none."""

    begin: float
    end: float
    step: int

    def span(self, now: float, finest: int = 1) -> Span:
        """The range in the form of an answer, for a series whose finest step is ``finest`` seconds.

        :raises CallerError: when there are too many points, or the step is finer than the points kept for that time
        """
        step = self.step or self._default_step(now, finest)
        step = math.lcm(step, finest)
        resolution = next(one for one in reversed(RESOLUTIONS) if step % one.step == 0)
        oldest = now - resolution.seconds - _TOLERANCE
        if self.begin < oldest and resolution is not RESOLUTIONS[-1]:
            coarser = RESOLUTIONS[RESOLUTIONS.index(resolution) + 1].step
            hours = f"{resolution.seconds / 3600:.3g} h"
            raise CallerError(f"`step` is `{step}`, expected a multiple of {coarser} for points older than {hours}")
        begin = math.floor(max(self.begin, now - _KEPT) / step) * step
        end = min(math.ceil(self.end / step), math.floor(now / step)) * step
        if (end - begin) // step > MOST_POINTS:
            least = math.ceil((self.end - self.begin) / MOST_POINTS)
            raise CallerError(
                f"`step` is `{step}`, which makes more than {MOST_POINTS} points, expected {least} or more"
            )
        return Span(begin, max(begin, end), step, resolution)

    def _default_step(self, now: float, finest: int) -> int:
        for step in _STEPS:
            resolution = next(one for one in reversed(RESOLUTIONS) if step % one.step == 0)
            if step >= finest and now - self.begin <= resolution.seconds and self.end - self.begin <= step * _SHOWN:
                return step
        return _STEPS[-1]


def read_range(begin: str, end: str, step: str, now: float) -> HistoryRange:
    """Read the parameters ``from``, ``to`` and ``step``.

    :param now: Unix time, to which negative seconds are relative
    :raises CallerError: when a parameter is not valid
    """
    first = _read_moment("from", begin, now, now - DEFAULT_SECONDS)
    last = _read_moment("to", end, now, now)
    if not first < last:
        raise CallerError(f"`from` is `{begin or -DEFAULT_SECONDS}`, expected a time before `to`, `{end or 'now'}`")
    return HistoryRange(first, last, _read_step(step))


def _read_moment(name: str, text: str, now: float, default: float) -> float:
    if not text:
        return default
    if text.startswith("-") and text[1:].isascii() and text[1:].isdigit() and len(text) < 12:
        return now - int(text[1:])
    return read_time(name, text, ", or negative seconds before now such as -3600")


def _read_step(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 7 and 1 <= int(text) <= _KEPT):
        raise CallerError(f"`step` is `{text}`, expected seconds, 1, 10, 60 or a multiple, at most {_KEPT}")
    return int(text)
