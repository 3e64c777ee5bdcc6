"""Which series is meant: a metric and a target as people say them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.registry import metrics
from sluice_core.describe import MetricInfo
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME
from sluice_dsl.diagnostics import closest_match
from sluice_metric_history.records import BANDWIDTH_METRICS, OWNED, SeriesKey
from sluice_motif_control.spaces import MOTIF_METRICS
from sluice_volumes.metrics import POOL_METRICS, VOLUME_METRICS


@dataclass(frozen=True, slots=True)
class Selection:
    """A metric, and the series that may be meant by a target, the first that is kept counts.

    ``target`` is as it was said.  ``account`` is whose it is, and ``level`` which, for the rule; both are of
    the first series.
    """

    metric: MetricInfo
    target: str
    series: tuple[SeriesKey, ...]

    @property
    def level(self) -> str:
        """That of the target."""
        return self.series[0].level

    @property
    def path(self) -> str:
        """That of the target; empty of the cluster and of what is nobody's."""
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
        near = closest_match(name.upper(), [*_NOT_REGISTERED, *metrics.list_all(backend)])
        hint = f", did you mean `{near}`" if near else ""
        raise NotFound(f"no metric `{name}`{hint}") from None


def select(backend: Backend, name: str, target: str, rest: str) -> Selection:
    """The series of metric ``name`` that ``target`` may mean, or the rest of a level.

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
    found = tuple(SeriesKey(metric.name, *one) for one in _places(backend, metric, target))
    if not found:
        levels = ", ".join(one for one in (*metric.granularities, CLUSTER) if one not in _NOT_KEPT)
        raise CallerError(f"`target` is `{target}`, but `{metric.name}` is of {levels}")
    return Selection(metric, target, found)


#: Metrics that the registry does not list: of bandwidth, and of volumes and motifs, which a cluster need not have.
_NOT_REGISTERED: Final = {
    **BANDWIDTH_METRICS,
    **{name: one for one in (*VOLUME_METRICS, *POOL_METRICS, *MOTIF_METRICS) for name in (one.name, *one.aliases)},
}
#: Objects have no history: there are too many.
_NOT_KEPT: Final = ("object",)


def _owned(metric: MetricInfo) -> list[str]:
    return [level for level in metric.granularities if level in OWNED]


def _places(backend: Backend, metric: MetricInfo, target: str) -> Iterator[tuple[str, str]]:
    """Levels and paths that ``target`` may mean."""
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
