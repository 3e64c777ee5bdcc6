"""The host of the metrics inside a Swift worker.

This runs on Swift's request path, so its shape follows from what it costs:

* A request finds its two cells (tenant, container) once, at ``begin``; events add to both.
* ``admitted`` and ``ended`` answers depend on the method only: each metric is asked once per method.
* A byte event asks the metrics that override it, and no others.
* A cell that changed stands in a list once, so ``changed`` costs what changed and not what exists.

One thread calls all of it (green threads count as one: nothing here waits).  A metric that raises, or
answers something else than a finite number, is switched off for that event, counted in ``failures``
and logged; the request goes on.  A gauge is then switched off altogether, since one that no longer
comes down would stay up for ever.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final

from sluice_core.windows import WORKER_FORGETS, birth
from sluice_metrics.api import Metric

Row = tuple[str, int, tuple[float, ...]]
_Constants = tuple[tuple[int, float], ...]
_Answer = Callable[[str, int], float]

_log = logging.getLogger(__name__)

#: Methods whose answers are remembered; clients may invent more.
_KNOWN_METHODS: Final = 32
#: Sweeps per time-to-forget.
_SWEEPS: Final = 4


class _Cell:
    """The totals of one path."""

    __slots__ = ("__weakref__", "born", "dirty", "path", "touched", "values")

    def __init__(self, path: str, born: int, size: int) -> None:
        self.path = path
        self.born = born
        self.values: list[float] = [0] * size
        self.dirty = False
        self.touched = 0.0


class Handle:
    """One request: tell it what happens, in the order of ``sluice_metrics.api``.

    ``admitted`` and ``ended`` count once however often they are called, and ``ended`` of a request
    that was never admitted counts nothing.
    """

    __slots__ = ("_container", "_meter", "_state", "_tenant")

    def __init__(self, meter: Meter, tenant: _Cell, container: _Cell) -> None:
        self._meter = meter
        self._tenant = tenant
        self._container = container
        self._state = 0

    def admitted(self, method: str) -> None:
        """Swift let the request in."""
        if self._state == 0:
            self._state = 1
            meter = self._meter
            amounts = meter.on_admitted.get(method)
            self._add(meter.learn("admitted", method) if amounts is None else amounts)

    def ended(self, method: str) -> None:
        """The request is over."""
        if self._state == 1:
            self._state = 2
            meter = self._meter
            amounts = meter.on_ended.get(method)
            self._add(meter.learn("ended", method) if amounts is None else amounts)

    def received(self, method: str, size: int) -> None:
        """``size`` plain bytes came from the client."""
        meter = self._meter
        for number, answer in meter.on_received:
            self._ask("received", number, answer, method, size)

    def sent(self, method: str, size: int) -> None:
        """``size`` plain bytes went to the client."""
        meter = self._meter
        for number, answer in meter.on_sent:
            self._ask("sent", number, answer, method, size)

    def _ask(self, event: str, number: int, answer: _Answer, method: str, size: int) -> None:
        try:
            amount = answer(method, size)
            if not amount:
                return
            if not isfinite(amount):
                raise ValueError(f"`{amount}` is not finite")
        except Exception as error:  # noqa: BLE001  a metric's fault must not end a request; it is logged
            self._meter.fail(event, number, error)
            return
        tenant, container = self._tenant, self._container
        tenant.values[number] += amount
        container.values[number] += amount
        if not (tenant.dirty and container.dirty):
            self._meter.touch(tenant, container)

    def _add(self, amounts: _Constants) -> None:
        if not amounts:
            return
        tenant, container = self._tenant, self._container
        ours, theirs = tenant.values, container.values
        for number, amount in amounts:
            ours[number] += amount
            theirs[number] += amount
        if not (tenant.dirty and container.dirty):
            self._meter.touch(tenant, container)


class Meter:
    """All totals of one worker.  ``names`` and ``gauges`` are what its Hello announces."""

    def __init__(
        self, metrics: Iterable[Metric], clock: Callable[[], float] = time.monotonic, forget: float = WORKER_FORGETS
    ) -> None:
        """
        :param clock: the machine's monotonic clock, the same for worker and agent
        :param forget: seconds after which a path without news is forgotten
        """
        self._metrics = list(metrics)
        self._clock = clock
        self._forget = forget
        self._cells: dict[str, _Cell] = {}
        self._dirty: list[_Cell] = []
        self._swept = clock()
        self._last_birth = 0
        self._off: set[tuple[str, int]] = set()
        self.names = tuple(metric.info.name for metric in self._metrics)
        self.gauges = tuple(metric.info.name for metric in self._metrics if metric.gauge)
        #: Event and metric → how often it failed (once: it is then switched off for that event).
        self.failures: dict[str, int] = {}
        self.on_admitted: dict[str, _Constants] = {}
        self.on_ended: dict[str, _Constants] = {}
        self.on_received: tuple[tuple[int, _Answer], ...] = ()
        self.on_sent: tuple[tuple[int, _Answer], ...] = ()
        self._arm()

    def begin(self, account: str, container: str) -> Handle:
        """The handle of a request for an object in ``account/container``."""
        cells = self._cells
        path = f"{account}/{container}"
        return Handle(self, cells.get(account) or self._new(account), cells.get(path) or self._new(path))

    def changed(self) -> list[Row]:
        """Rows that changed since they got through, for ``Counters.rows``; forgets idle ones."""
        now = self._clock()
        for cell in self._dirty:
            cell.touched = now
        if now - self._swept >= self._forget / _SWEEPS:
            self._swept = now
            self._sweep(now)
        return [(cell.path, cell.born, tuple(cell.values)) for cell in self._dirty]

    def delivered(self, rows: Iterable[Row]) -> None:
        """These ``rows`` of ``changed`` reached the agent; what moved on meanwhile stays changed."""
        for path, born, values in rows:
            cell = self._cells.get(path)
            if cell is not None and cell.born == born and tuple(cell.values) == tuple(values):
                cell.dirty = False
        self._dirty = [cell for cell in self._dirty if cell.dirty]

    def reconnected(self) -> None:
        """Another agent listens now: every row is news again (levels above all)."""
        for cell in self._cells.values():
            if not cell.dirty and any(cell.values):
                cell.dirty = True
                self._dirty.append(cell)

    # What follows is for Handle.

    def touch(self, *cells: _Cell) -> None:
        """Note that ``cells`` changed."""
        for cell in cells:
            if not cell.dirty:
                cell.dirty = True
                self._dirty.append(cell)

    def learn(self, event: str, method: str) -> _Constants:
        """What ``event`` of ``method`` adds: asked once and remembered."""
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
        # A gauge may just have been switched off, by a metric asked above.
        found = tuple((number, amount) for number, amount in amounts if (event, number) not in self._off)
        if len(known) < _KNOWN_METHODS:
            known[method] = found
        return found

    def fail(self, event: str, number: int, error: Exception) -> None:
        """Switch metric ``number`` off for ``event``, a gauge for everything."""
        metric = self._metrics[number]
        what = f"{metric.info.name}.{event}"
        self.failures[what] = self.failures.get(what, 0) + 1
        _log.error("metric `%s` is switched off: %s: %s", what, type(error).__name__, error, exc_info=error)
        events = ("admitted", "received", "sent", "ended") if metric.gauge else (event,)
        self._off.update((one, number) for one in events)
        if metric.gauge:
            for cell in self._cells.values():
                cell.values[number] = 0
                self.touch(cell)
        self._arm()

    def _arm(self) -> None:
        """Compute which metrics answer which event."""
        self.on_admitted = {}
        self.on_ended = {}
        numbered = list(enumerate(self._metrics))
        self.on_received = tuple((n, metric.received) for n, metric in numbered if self._answers("received", n))
        self.on_sent = tuple((n, metric.sent) for n, metric in numbered if self._answers("sent", n))

    def _answers(self, event: str, number: int) -> bool:
        overridden = getattr(type(self._metrics[number]), event) is not getattr(Metric, event)
        return overridden and (event, number) not in self._off

    def _new(self, path: str) -> _Cell:
        born = max(birth(self._clock), self._last_birth + 1)
        self._last_birth = born
        cell = _Cell(path, born, len(self._metrics))
        cell.touched = self._clock()
        self._cells[path] = cell
        return cell

    def _sweep(self, now: float) -> None:
        """Forget rows that are idle and whose levels are down, unless a request still holds them."""
        gauges = [number for number, metric in enumerate(self._metrics) if metric.gauge]
        idle = [
            path
            for path, cell in self._cells.items()
            if not cell.dirty and now - cell.touched >= self._forget and not any(cell.values[n] for n in gauges)
        ]
        for path in idle:
            held = weakref.ref(self._cells.pop(path))
            survivor = held()
            if survivor is not None:  # a request that is still silent counts here later
                self._cells[path] = survivor
