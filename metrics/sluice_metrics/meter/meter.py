"""The host of the metrics inside a Swift worker.

It runs in Swift's request path, so its structure follows from the cost:

* A request finds its two cells (tenant, container) once, at ``begin``; events add to both.
* ``admitted`` and ``ended`` answers depend on the method only: each metric is called once per method.
* A byte event calls only the metrics that override it.  The caller reports bytes in portions.
* A changed cell is in a list once (``rows``), so the cost of ``changed`` depends on the changed cells, not on all
  cells.
* Metrics that also count single objects (``busiest``) find the object's cell when the request is admitted: requests
  that Swift refuses cannot displace objects.
* The set of metrics may change (``measure``): columns move, present requests keep their cells.
  A request counts no end for a metric that was added after its beginning, or a level would become negative.

One thread calls all of it (green threads count as one: nothing here waits).  A metric that raises, or returns a value
that is not a finite number, is switched off for that event, counted in ``failures`` and logged; the request continues.
A gauge is then switched off altogether, since its level could no longer fall.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Final

from sluice_core.messages.policies import OBJECT
from sluice_core.metrics.totals import WEIGHT, WORKER_FORGETS
from sluice_metrics.api import Metric, Response
from sluice_metrics.meter.busiest import AGEING, LIMIT
from sluice_metrics.meter.cell import MOST_COLUMNS, Cell
from sluice_metrics.meter.responses import ResponseCounter
from sluice_metrics.meter.rows import Row, Rows
from sluice_metrics.meter.sampling import Sample, Sampler

_Answer = Callable[[str, int], float]
#: The additions of an event: number of the column, amount, and whether objects count it too.
_Addition = tuple[int, float, bool]
_Additions = tuple[_Addition, ...]
#: The metrics that answer an event: number of the column, the method, and whether objects count it too.
_Answers = tuple[tuple[int, _Answer, bool], ...]

_log = logging.getLogger(__name__)

_EVENTS: Final = ("admitted", "received", "sent", "ended", "sampled", "responded")
#: Methods whose answers are cached; clients may send any method.
_KNOWN_METHODS: Final = 32


class RequestHandle:
    """One request: its methods report events, in the order of ``sluice_metrics.api``.

    ``admitted`` and ``ended`` count once, however often they are called, and ``ended`` of a request that was never
    admitted
    that was never admitted counts nothing.
    """

    __slots__ = ("_container", "_meter", "_name", "_object", "_state", "_tenant")

    def __init__(self, meter: Meter, tenant: Cell, container: Cell, name: str) -> None:
        self._meter = meter
        self._tenant = tenant
        self._container = container
        self._name = name
        self._object: Cell | None = None
        self._state = 0

    def admitted(self, method: str) -> None:
        """Swift authorized the request."""
        if self._state == 0:
            meter = self._meter
            self._state = meter.generation
            objects = meter.rows.objects
            if self._name and objects is not None:
                self._object = objects.hit(f"{self._container.path}/{self._name}")
            additions = meter.on_admitted.get(method)
            self._add(meter.learn("admitted", method) if additions is None else additions)

    def ended(self, method: str) -> None:
        """The request has ended."""
        began = self._state
        if began > 0:
            self._state = -1
            meter = self._meter
            additions = meter.on_ended.get(method)
            if additions is None:
                additions = meter.learn("ended", method)
            self._add(additions if began == meter.generation else meter.seen_by(began, additions))

    def received(self, method: str, size: int) -> None:
        """``size`` more plain bytes came from the client."""
        self._ask("received", self._meter.on_received, method, size)

    def sent(self, method: str, size: int) -> None:
        """``size`` more plain bytes went to the client."""
        self._ask("sent", self._meter.on_sent, method, size)

    def responded(self, response: Response, seconds: float) -> None:
        """The response has ended, ``seconds`` after the request arrived; call it once."""
        self._meter.responses.count(self._tenant, self._container, response, seconds)

    def sample(self) -> Sample | None:
        """An upload begins: return the sample of its first bytes, or None when it is not sampled."""
        sampler = self._meter.sampler
        return sampler.begin(self._tenant, self._container) if sampler.size else None

    def _ask(self, event: str, answers: _Answers, method: str, size: int) -> None:
        additions = []
        for number, answer, objects in answers:
            try:
                amount = answer(method, size)
                if not amount:
                    continue
                if not isfinite(amount):
                    raise ValueError(f"`{amount}` is not finite")
            except Exception as error:  # noqa: BLE001  a metric's fault must not end a request; it is logged
                self._meter.fail(event, number, error)
                continue
            additions.append((number, amount, objects))
        self._add(additions)

    def _add(self, additions: Sequence[_Addition]) -> None:
        if not additions:
            return
        tenant, container, named = self._tenant, self._container, self._object
        ours, theirs = tenant.values, container.values
        for number, amount, objects in additions:
            ours[number] += amount
            theirs[number] += amount
            if objects and named is not None:
                named.values[number] += amount
                if not named.dirty:
                    self._meter.rows.touch(named)
        if not (tenant.dirty and container.dirty):
            self._meter.rows.touch(tenant, container)


class Meter:
    """All totals of one worker.  ``names``, ``gauges`` and ``quantiles`` are what its Hello announces."""

    def __init__(
        self,
        metrics: Iterable[Metric],
        clock: Callable[[], float] = time.monotonic,
        forget: float = WORKER_FORGETS,
        objects: int = LIMIT,
    ) -> None:
        """
        :param clock: the machine's monotonic clock, the same for worker and agent
        :param forget: seconds after which a path without news is dropped
        :param objects: number of objects that are counted separately
        """
        self._clock = clock
        self._aged = clock()
        self.rows = Rows(clock, forget, objects)
        self._cells = self.rows.cells
        #: Number of changes of the metrics, counted from one.
        self.generation = 0
        self._metrics: list[Metric] = []
        #: For each metric, the generation since which it counts.
        self._since: list[int] = []
        self._off: set[tuple[str, int]] = set()
        self._of_objects: list[bool] = []
        self.names: tuple[str, ...] = ()
        self.gauges: tuple[str, ...] = ()
        #: Metric → name of its sketch, and the quantile.
        self.quantiles: dict[str, tuple[str, float]] = {}
        self.sampler = Sampler(self, clock)
        self.responses = ResponseCounter(self)
        #: Event and metric → how often it failed (once: it is then switched off for that event).
        self.failures: dict[str, int] = {}
        self.on_admitted: dict[str, _Additions] = {}
        self.on_ended: dict[str, _Additions] = {}
        self.on_received: _Answers = ()
        self.on_sent: _Answers = ()
        self.measure(metrics)

    def measure(self, metrics: Iterable[Metric]) -> None:
        """Count these from now on; send a new hello afterwards.

        Totals of a metric that stays are kept, also of a total that is replaced under its name; all others begin at
        zero.

        :raises ValueError: when there are more columns than a cell can have
        """
        wanted = list(metrics)
        names, weights = _columns(wanted)
        if len(names) > MOST_COLUMNS:
            raise ValueError(f"{len(names)} columns, expected at most {MOST_COLUMNS}")
        owners = (*range(len(wanted)), *weights)
        gauges = tuple(name for name, n in zip(names, owners, strict=True) if wanted[n].gauge or wanted[n].sample_size)
        old = {metric.info.name: number for number, metric in enumerate(self._metrics)}
        before = {n: old[one.info.name] for n, one in enumerate(wanted) if one.info.name in old}
        kept = {n: number for n, number in before.items() if self._metrics[number] is wanted[n]}
        self.generation += 1
        self._since = [self._since[kept[n]] if n in kept else self.generation for n in range(len(wanted))]
        self._off = {(event, n) for n, number in kept.items() for event in _EVENTS if (event, number) in self._off}
        totals = {*self.names}.difference(self.gauges, gauges)
        stay = [name in totals or owner in kept for name, owner in zip(names, owners, strict=True)]
        columns = {name: column for column, name in enumerate(self.names)}
        moved = [columns.get(name) if stays else None for name, stays in zip(names, stay, strict=True)]
        self._metrics, self.names, self.gauges = wanted, names, gauges
        self._of_objects = [OBJECT in metric.info.granularities and not metric.gauge for metric in wanted]
        self.quantiles = _quantiles(wanted)
        weighed = [(n, column, wanted[n]) for n, column in weights.items()]
        self.sampler.measuring(one for one in weighed if one[2].sample_size and ("sampled", one[0]) not in self._off)
        sketches = {name for name, _ in self.quantiles.values()}
        responding: list[tuple[int, int | None, Metric]] = [one for one in weighed if one[2].mean]
        responding += [(n, None, one) for n, one in enumerate(wanted) if one.info.name in sketches]
        self.responses.measure(one for one in responding if ("responded", one[0]) not in self._off)
        levels_at = [number for number, name in enumerate(names) if name in self.gauges]
        self.rows.move(moved, levels_at, any(self._of_objects), sketches)
        self._arm()

    def begin(self, account: str, container: str, name: str = "") -> RequestHandle:
        """The handle of a request for the object ``name`` in ``account/container``."""
        cells, add = self._cells, self.rows.add
        path = f"{account}/{container}"
        return RequestHandle(self, cells.get(account) or add(account), cells.get(path) or add(path), name)

    def changed(self) -> list[Row]:
        """Return rows that changed since their delivery, for ``Counters.rows``; drop idle ones."""
        now = self._clock()
        if now - self._aged >= AGEING:
            self._aged = now
            self.sampler.age(now)
            if self.rows.objects is not None:
                self.rows.objects.age()
        return self.rows.changed()

    def sketches(self, rows: Sequence[Row]) -> dict[str, list[list[float]]]:
        """Return the changed buckets of the sketches of ``rows``, for ``Counters.sketches``."""
        return {name: self.rows.sketches(name, rows) for name in {name for name, _ in self.quantiles.values()}}

    def delivered(self, rows: Iterable[Row]) -> None:
        """These ``rows`` of ``changed`` reached the agent; counts since then stay changed."""
        self.rows.delivered(rows)

    def reconnected(self) -> None:
        """Send every row again (levels above all): another agent is connected."""
        self.rows.touch_all()

    # What follows is for RequestHandle, Sampler and ResponseCounter.

    def seen_by(self, generation: int, additions: _Additions) -> _Additions:
        """The additions of those metrics that existed in ``generation``."""
        return tuple(one for one in additions if self._since[one[0]] <= generation)

    def touch(self, *cells: Cell) -> None:
        """Mark ``cells`` as changed."""
        self.rows.touch(*cells)

    def learn(self, event: str, method: str) -> _Additions:
        """Call the metrics once for the additions of ``event`` of ``method``, and cache them."""
        amounts = []
        for number, metric in enumerate(self._metrics):
            if (event, number) in self._off:
                continue
            try:
                amount = getattr(metric, event)(method)
                if not isfinite(amount):
                    raise ValueError(f"`{amount}` is not finite")
            except Exception as error:  # noqa: BLE001  see Handle._ask
                self.fail(event, number, error)
                continue
            if amount:
                amounts.append((number, amount))
        known = self.on_admitted if event == "admitted" else self.on_ended
        # A gauge may just have been switched off by a metric that was called above.
        additions = tuple(
            (number, amount, self._of_objects[number]) for number, amount in amounts if (event, number) not in self._off
        )
        if len(known) < _KNOWN_METHODS:
            known[method] = additions
        return additions

    def fail(self, event: str, number: int, error: Exception) -> None:
        """Switch metric ``number`` off for ``event``; switch a gauge off for all events."""
        metric = self._metrics[number]
        what = f"{metric.info.name}.{event}"
        self.failures[what] = self.failures.get(what, 0) + 1
        _log.error("metric `%s` is switched off: %s: %s", what, type(error).__name__, error, exc_info=error)
        events = ("admitted", "received", "sent", "ended") if metric.gauge else (event,)
        self._off.update((one, number) for one in events)
        columns = [number] if metric.gauge else []
        if event == "sampled":
            self.sampler.without(number)
            columns = [number, self.names.index(metric.info.name + WEIGHT)]
        elif event == "responded":
            self.responses.without(number)
        for cell in self._cells.values() if columns else ():
            for column in columns:
                cell.values[column] = 0
            self.touch(cell)
        self._arm()

    def _arm(self) -> None:
        """Compute which metrics answer which event."""
        self.on_admitted = {}
        self.on_ended = {}
        self.on_received = self._answers("received")
        self.on_sent = self._answers("sent")

    def _answers(self, event: str) -> _Answers:
        """The answers of the metrics that override ``event`` and are not switched off."""
        return tuple(
            (number, getattr(metric, event), self._of_objects[number])
            for number, metric in enumerate(self._metrics)
            if getattr(type(metric), event) is not getattr(Metric, event) and (event, number) not in self._off
        )


def _columns(metrics: list[Metric]) -> tuple[tuple[str, ...], dict[int, int]]:
    """Names of all columns, and the columns of weights by the numbers of their metrics.

    The column of a quantile is the weight of its sketch's counts; only that of the sketch's name grows.
    """
    means = [number for number, metric in enumerate(metrics) if metric.sample_size or metric.mean]
    weights = {number: len(metrics) + at for at, number in enumerate(means)}
    names = [metric.info.name + (WEIGHT if metric.quantile else "") for metric in metrics]
    return (*names, *(names[number] + WEIGHT for number in means)), weights


def _quantiles(metrics: list[Metric]) -> dict[str, tuple[str, float]]:
    """Metric → the first metric that counts the same responses, whose name its sketch has, and the quantile."""
    first: dict[object, str] = {}
    return {
        metric.info.name: (first.setdefault(type(metric).responded, metric.info.name), metric.quantile)
        for metric in metrics
        if metric.quantile
    }
