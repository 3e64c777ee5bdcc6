"""The points of a series, from Redis or a Prometheus; and the list of kept series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice_controller.catalog.backend import Backend
from sluice_controller.metric_history.prometheus_client import PrometheusClient
from sluice_controller.metric_history.selection import HistoryRange, Selection, Span
from sluice_core.errors import CallerError, NotFound
from sluice_metric_history.operations import find_series, forget_series, read_directory, read_points
from sluice_metric_history.records import SeriesRecord
from sluice_metric_history.resolutions import Point, combine


@dataclass(frozen=True, slots=True)
class History:
    """The points of one series; None are gaps.  ``of`` is the number of paths in the sum of a rest."""

    selection: Selection
    level: str
    span: Span
    points: list[Point | None]
    of: int = 0


def read_history(backend: Backend, selection: Selection, wanted: HistoryRange) -> History:
    """The history of a selection, from Redis, where actor hosts write it.

    :raises NotFound: when it has no series
    :raises PeerError: when Redis is unreachable
    """
    store, now = backend.history, backend.now()
    record = store.run(find_series(store.keys, selection.series))
    if record is None or _without_deleted(backend, [record]) == []:
        what = f"of `{selection.target}`" if selection.target else "of the cluster"
        why = "only the busiest have a series of their own" if selection.path else "it was not measured lately"
        raise NotFound(f"no history of `{selection.metric.name}` {what} is kept: {why}")
    span = wanted.span(now, record.step)
    resolution = span.resolution
    # The ring has no older points.
    first = max(span.begin, (int(now) // resolution.step + 1 - resolution.slots) * resolution.step)
    missing: list[Point | None] = [None] * ((min(first, span.end) - span.begin) // resolution.step)
    points = missing
    if first < span.end:
        points = missing + store.run(read_points(store.keys, resolution, record.id, first, span.end))
    return History(selection, record.level, span, _in_steps(points, span.step // resolution.step), record.of)


def query_history(
    client: PrometheusClient, expression: str, backend: Backend, selection: Selection, wanted: HistoryRange
) -> History:
    """The history of a selection, from a Prometheus.

    :param expression: in PromQL
    :raises PeerError: when it is away
    """
    span = wanted.span(backend.now())
    return History(selection, selection.level, span, client.points(expression, span.begin, span.end, span.step))


def list_series(backend: Backend, accounts: frozenset[str] | None, metric: str, target: str) -> dict[str, SeriesRecord]:
    """All series by name, only those of ``metric`` and ``target`` unless these are empty.

    :param accounts: only of these; None for all
    """
    store = backend.history
    stored = store.run(read_directory(store.keys)).values()
    return {
        name_of(series): series
        for series in _without_deleted(backend, stored)
        if (accounts is None or (series.key.owner in accounts and not series.rest))
        and metric in ("", series.metric)
        and target in ("", series.path)
    }


def name_of(series: SeriesRecord) -> str:
    """The sort key of a series, also the marker of a page: metric, level and path."""
    return " ".join((series.metric, series.level, "*" if series.rest else series.path))


def forget(backend: Backend, target: str) -> list[SeriesRecord]:
    """Delete the series of ``target``, of the paths in it, and of its rows on nodes; return the deleted ones.

    :param target: an account or the name of its project, a container, a volume, a node, …
    :raises CallerError: when it is empty
    """
    if not target:
        raise CallerError("expected `target`, whose history is to be deleted")
    store = backend.history
    word, slash, name = target.partition("/")
    paths = {target, f"{backend.native.account(word)}{slash}{name}"}
    gone = [
        one
        for one in store.run(read_directory(store.keys)).values()
        if _is_in(one.path, paths) or one.key.account in paths
    ]
    store.run(forget_series(store.keys, gone))
    return gone


def _without_deleted(backend: Backend, records: Iterable[SeriesRecord]) -> list[SeriesRecord]:
    """``records`` without those of deleted projects, whose history is deleted here."""
    known = list(records)
    if backend.projects is None:
        return known
    accounts = backend.projects.deleted({one.key.account for one in known})
    gone = [one for one in known if one.key.account in accounts]
    backend.history.run(forget_series(backend.history.keys, gone))
    return [one for one in known if one.key.account not in accounts]


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _in_steps(points: list[Point | None], size: int) -> list[Point | None]:
    """Combine every ``size`` points."""
    if size == 1:
        return points
    return [combine(points[place : place + size]) for place in range(0, len(points), size)]
