"""Running totals of a node's workers, merged into values per wall-clock window.

Workers send *running totals*, so a lost message costs resolution, not counts.  The rules of this module:

* A new row counts in full if it was born after the agent started, else it is a baseline only: a restarted agent must
  not take a day's total for one second's growth.  ``born`` therefore is :func:`birth`, one clock for all processes of a
  machine.
* When a worker disconnects, its levels (gauges) are removed at once.  Its totals are kept for a while: a worker that
  only lost its connection continues without gap or repetition.
* The agent also drops rows without news, later than the worker does.  It drops rows of objects sooner, since they
  change with the load, and keeps a limited number of them.
* The metrics of a worker may change while it runs.  The totals of metrics that remain continue, the columns of other
  metrics begin at zero, in the worker and in the agent.  A metric that no worker announces is no longer reported.
* A mean travels as amounts under its own name and weights under that name and :data:`WEIGHT`: two levels of a mean
  over samples, two running totals of one over responses.  Both add up over workers, and :func:`means` divides.
* A quantile is made of sketches (:mod:`sluice_core.metrics.sketch`), whose buckets are running totals, too.
* The rows of a konnector are of volumes: its metrics have for a tenant the sum over the tenant's volumes.

No function here reads a clock except by the two constructors' defaults; one thread calls it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from typing import Final, TypeVar

from sluice_core.describe import KONNECTOR
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.messages.policies import CONTAINER, OBJECT, TENANT, VOLUME
from sluice_core.metrics.sketch import Sketch, Sketches, SketchGrowth, merge, unpack

T = TypeVar("T")


def granularity(path: str) -> str:
    """The target level of ``account``, ``account/container`` or ``account/container/object``."""
    return (TENANT, CONTAINER, OBJECT)[min(path.count("/"), 2)]


def by_granularity(cells: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """Group values by the level of their paths."""
    levels: dict[str, dict[str, T]] = {}
    for path, value in cells.items():
        levels.setdefault(granularity(path), {})[path] = value
    return levels


def values_by_volume(cells: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Values by ``account/volume``, for each volume and, added up, for each tenant."""
    tenants: dict[str, float] = {}
    for path, value in cells.items():
        account = path.partition("/")[0]
        tenants[account] = tenants.get(account, 0.0) + value
    return {VOLUME: dict(cells), TENANT: tenants} if cells else {}


def sketches_by_volume(cells: Mapping[str, Sketch]) -> dict[str, dict[str, Sketch]]:
    """As :func:`values_by_volume`, for sketches."""
    tenants: dict[str, Sketch] = {}
    for path, sketch in cells.items():
        merge(tenants.setdefault(path.partition("/")[0], {}), sketch.items())
    return {VOLUME: dict(cells), TENANT: tenants} if cells else {}


#: Seconds after which a worker forgets a row without news (if no level is up) …
WORKER_FORGETS: Final = 300.0
#: … and after which the agent drops it, the rows of a lost worker included.
AGENT_FORGETS: Final = 900.0
#: Seconds after which the agent drops an object's row, and the number of such rows that it keeps of a worker.
OBJECTS_FORGET: Final = 60.0
MOST_OBJECTS: Final = 10_000
#: Follows the name of a metric that is a mean, for the column of its weights.
WEIGHT: Final = ":weight"

#: Granularity → path → sum.
Sums = Mapping[str, Mapping[str, float]]
Values = dict[str, dict[str, dict[str, float]]]


def birth(clock: Callable[[], float] = time.monotonic) -> int:
    """The ``born`` of a row that begins now: microseconds of the machine's monotonic clock."""
    return int(clock() * 1_000_000)


@dataclass(slots=True)
class _Row:
    born: int
    values: tuple[float, ...]
    seen: float
    #: By name.
    sketches: dict[str, Sketch] = field(default_factory=dict)


@dataclass(slots=True)
class _WorkerTotals:
    metrics: tuple[str, ...]
    gauges: frozenset[int]
    #: Metric → name of its sketch, and the quantile.
    quantiles: Mapping[str, tuple[str, float]]
    #: Whether its rows are of volumes.
    volumes: bool
    rows: dict[str, _Row] = field(default_factory=dict)
    objects: dict[str, _Row] = field(default_factory=dict)
    lost: bool = False

    def where(self, path: str) -> dict[str, _Row]:
        """Return the rows to which ``path`` belongs."""
        return self.objects if granularity(path) == OBJECT else self.rows


class Totals:
    """The totals of the workers of one node; see the module's head for the rules."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._baseline = birth(clock)  # rows born before may have been counted before
        self._workers: dict[str, _WorkerTotals] = {}
        self._growth: dict[str, dict[str, float]] = {}
        self._levels: dict[str, dict[str, float]] = {}
        self._sketches = SketchGrowth()
        self._swept = self._swept_objects = clock()

    def add_worker(self, hello: Hello) -> None:
        """Register a worker that has introduced itself; a known worker continues."""
        self.lose_worker(hello.worker)
        gauges = frozenset(number for number, name in enumerate(hello.metrics) if name in hello.gauges)
        for number, name in enumerate(hello.metrics):
            (self._levels if number in gauges else self._growth).setdefault(name, {})
        known = self._workers.get(hello.worker)
        said = (hello.metrics, gauges, hello.quantiles, hello.role == KONNECTOR)
        if known is not None and (known.metrics, known.gauges, known.quantiles, known.volumes) == said:
            known.lost = False
            return
        fresh = self._workers[hello.worker] = _WorkerTotals(*said)
        if known is not None:
            fresh.rows, fresh.objects = _moved(known.rows, known, fresh), _moved(known.objects, known, fresh)
        self._silence()

    def update(self, counters: Counters) -> bool:
        """Add a worker's totals; return False when it has sent no hello (request one).

        :raises DecodeError: when a row has not one finite number for each announced metric; nothing is added
        """
        worker = self._workers.get(counters.worker)
        if worker is None or worker.lost:
            return False
        for path, _, values in counters.rows:
            if len(values) != len(worker.metrics) or not _all_numbers(values):
                raise DecodeError(f"row `{path}` is `{values}`, expected {len(worker.metrics)} numbers")
        now = self._clock()
        for number, (path, born, values) in enumerate(counters.rows):
            sketches = {name: unpack(packed[number]) for name, packed in counters.sketches.items() if packed[number]}
            self._take(worker, path, _Row(born, values, now, sketches))
        return True

    def lose_worker(self, worker: str) -> None:
        """Remove a disconnected worker: its levels are removed, its totals stop growing."""
        gone = self._workers.get(worker)
        if gone is None or gone.lost:
            return
        gone.lost = True
        for path, row in gone.rows.items():
            self._drop_levels(gone, path, row)

    def close_window(self, period: float) -> Values:
        """Metric → granularity → path → value of the window that ends now, and begin the next.

        Rates are growth by ``period`` seconds, gauges their present sum.  Paths where nothing
        happened are left out; a metric that some worker announced is never left out.
        """
        values: Values = {}
        of_volumes = self._metrics_of_volumes()
        for name, growth in self._growth.items():
            grown = {path: amount / period for path, amount in growth.items() if amount > 0}
            values[name] = values_by_volume(grown) if name in of_volumes else by_granularity(grown)
            growth.clear()
        for name, levels in self._levels.items():
            there = {path: value for path, value in levels.items() if value > 0}
            values[name] = values_by_volume(there) if name in of_volumes else by_granularity(there)
        self._sweep()
        return values

    def close_quantiles(self, period: float) -> dict[str, tuple[float, Sketches]]:
        """Return metric → its quantile and the sketches of the window that ends now, for metrics that are quantiles;
        begin the next window.
        """
        quantiles = {metric: told for worker in self._workers.values() for metric, told in worker.quantiles.items()}
        of_volumes = {quantiles[metric][0] for metric in self._metrics_of_volumes() & quantiles.keys()}
        grown = {
            name: sketches_by_volume(found) if name in of_volumes else by_granularity(found)
            for name, found in self._sketches.close(period).items()
        }
        return {metric: (quantile, grown.get(name, {})) for metric, (name, quantile) in quantiles.items()}

    def _metrics_of_volumes(self) -> set[str]:
        """The metrics that konnectors announced, quantiles too."""
        konnectors = [worker for worker in self._workers.values() if worker.volumes]
        return {name for worker in konnectors for name in (*worker.metrics, *worker.quantiles)}

    def _take(self, worker: _WorkerTotals, path: str, row: _Row) -> None:
        rows = worker.where(path)
        old = rows.get(path)
        if old is None and rows is worker.objects and len(rows) >= MOST_OBJECTS:
            return
        rows[path] = row
        if old is not None and old.born != row.born:
            self._drop_levels(worker, path, old)
            old = None
        fresh = old is None and row.born > self._baseline
        kept = old.sketches if old is not None else {}
        if old is not None or fresh:
            self._sketches.add(path, kept, row.sketches)
        for name, sketch in row.sketches.items():
            kept.setdefault(name, {}).update(sketch)
        row.sketches = kept
        for number, name in enumerate(worker.metrics):
            value = row.values[number]
            before = old.values[number] if old is not None else 0.0
            if number in worker.gauges:
                self._add(self._levels[name], path, value - before)
            elif (old is not None or fresh) and value > before:
                self._add(self._growth[name], path, value - before)

    def _drop_levels(self, worker: _WorkerTotals, path: str, row: _Row) -> None:
        """Subtract the levels of ``row``, so that they read as zero from now on."""
        for number in worker.gauges:
            self._add(self._levels[worker.metrics[number]], path, -row.values[number])
        row.values = tuple(0.0 if number in worker.gauges else one for number, one in enumerate(row.values))

    def _silence(self) -> None:
        """Leave out metrics that no worker announces any more."""
        workers = list(self._workers.values())
        totals = {name for one in workers for number, name in enumerate(one.metrics) if number not in one.gauges}
        levels = {one.metrics[number] for one in workers for number in one.gauges}
        for cells, names in ((self._growth, totals), (self._levels, levels)):
            for name in cells.keys() - names:
                del cells[name]

    @staticmethod
    def _add(cells: dict[str, float], path: str, amount: float) -> None:
        value = cells.get(path, 0.0) + amount
        if value:
            cells[path] = value
        else:
            cells.pop(path, None)

    def _sweep(self) -> None:
        """Drop rows without news, a few times in :data:`AGENT_FORGETS`."""
        now = self._clock()
        if now - self._swept_objects >= OBJECTS_FORGET / 4:
            self._swept_objects = now
            for worker in self._workers.values():
                silent = {path: row for path, row in worker.objects.items() if now - row.seen > OBJECTS_FORGET}
                self._forget(worker, silent)
        if now - self._swept < AGENT_FORGETS / 8:
            return
        self._swept = now
        for name, worker in list(self._workers.items()):
            old = {
                path: row
                for path, row in worker.rows.items()
                if now - row.seen > AGENT_FORGETS and not any(row.values[number] for number in worker.gauges)
            }
            self._forget(worker, old)
            if worker.lost and not worker.rows:
                del self._workers[name]

    def _forget(self, worker: _WorkerTotals, rows: dict[str, _Row]) -> None:
        """Drop ``rows``; a row that returns is a baseline and is not counted twice."""
        self._baseline = max(chain((row.born for row in rows.values()), (self._baseline,)))
        for path in list(rows):
            del worker.where(path)[path]


def _moved(rows: Mapping[str, _Row], before: _WorkerTotals, after: _WorkerTotals) -> dict[str, _Row]:
    """Return the rows of a worker that now announces other metrics: totals stay, other columns begin at zero."""
    totals = {name: number for number, name in enumerate(before.metrics) if number not in before.gauges}
    sketches = {name for name, _ in after.quantiles.values()}
    columns = [None if number in after.gauges else totals.get(name) for number, name in enumerate(after.metrics)]
    return {
        path: _Row(
            row.born,
            tuple(0.0 if one is None else row.values[one] for one in columns),
            row.seen,
            {name: sketch for name, sketch in row.sketches.items() if name in sketches},
        )
        for path, row in rows.items()
    }


def means(amounts: Sums, weights: Sums) -> dict[str, dict[str, float]]:
    """Granularity → path → amount by weight, where the weight is not zero; a missing amount is zero."""
    return {
        level: {path: amounts.get(level, {}).get(path, 0.0) / weight for path, weight in found.items() if weight}
        for level, found in weights.items()
    }


def _all_numbers(values: Iterable[float]) -> bool:
    """Whether all are finite numbers; a number that is not would make the sum invalid."""
    try:
        return isfinite(sum(values))
    except TypeError:
        return False
