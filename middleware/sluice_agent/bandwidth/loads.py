"""Turns the running totals of a node's workers into the node's load of each second."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import SIDES, Flow, Load, MovedObject, NodeLoad, ObjectKey, fastest_objects
from sluice_core.messages.base import MOST
from sluice_core.messages.credit import CreditHello, TrafficReport

PERIOD: Final = 1.0
#: Seconds between two messages of an idle node without limits …
_IDLE_PERIOD: Final = 5.0
#: … but so many more are sent after the last byte, in case one is lost.
_TRAILING_MESSAGES: Final = 3
#: Totals kept for each worker, the latest ones: more than a worker keeps itself.
_MOST_TOTALS: Final = 100_000


class LoadKey(NamedTuple):
    """The key of a total: a flow on one side and one device (empty at proxies)."""

    side: str
    flow: Flow
    device: str


@dataclass(slots=True)
class _WindowSum:
    """The growth of the totals since the last window."""

    moved: float = 0.0
    busy: float = 0.0
    held: float = 0.0


_ZERO: Final = (0, 0.0, 0.0)


@dataclass(slots=True)
class _WorkerLoads:
    hello: CreditHello
    #: Its running totals: bytes, seconds open, seconds held back.
    totals: dict[LoadKey, tuple[int, float, float]] = field(default_factory=dict)
    #: Transfers open right now, where there are any.
    open: Counter[LoadKey] = field(default_factory=Counter)


@dataclass(eq=False)
class LoadMeter:
    """The loads of one node; workers have the names of their connections, and count from their hello."""

    node: str
    #: As :attr:`NodeLoad.capacity`.
    capacity: Mapping[str, Mapping[str, float]]
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._number = 0
        self._workers: dict[str, _WorkerLoads] = {}
        self._sums: defaultdict[LoadKey, _WindowSum] = defaultdict(_WindowSum)
        self._objects: dict[tuple[str, ObjectKey], float] = {}
        self._policies: dict[str, str] = {}
        self._server = ""
        self._servers: dict[str, str] = {}
        self._had_workers = False
        self._closed: int | None = None
        self._closed_at = self._sent_at = -math.inf
        self._sides: tuple[str, ...] = ()
        self._trailing = 0
        #: The loads of the last window, in bytes per second.
        self.rows: tuple[Load, ...] = ()

    def add_worker(self, worker: str, hello: CreditHello) -> None:
        """Add a worker after its hello."""
        self._workers[worker] = _WorkerLoads(hello)
        self._policies.update(hello.policies)
        self._server = hello.server or self._server
        self._had_workers = True

    def remove_worker(self, worker: str) -> None:
        """Remove a worker; its totals still count in this window."""
        self._workers.pop(worker, None)

    def add_report(self, worker: str, report: TrafficReport) -> None:
        """Add the running totals of a worker."""
        known = self._workers[worker]
        for row in report.rows:
            place = LoadKey(known.hello.side, row.flow, row.device)
            before = known.totals.pop(place, _ZERO)
            if row.moved < before[0] or row.busy < before[1]:
                before = _ZERO  # its totals start from 0 again
            known.totals[place] = total = (row.moved, row.busy, row.held)
            if len(known.totals) > _MOST_TOTALS:
                del known.totals[next(iter(known.totals))]
            moved, busy, held = (new - old for new, old in zip(total, before, strict=True))
            known.open[place] = row.open
            if not row.open:
                del known.open[place]
            grown = self._sums[place]
            grown.moved = min(grown.moved + moved, MOST)
            grown.busy += busy
            grown.held += max(held, 0.0)
        for one in report.objects:
            self._objects[worker, one[:6]] = one.rate  # the latest of each worker
            self._servers[one.device] = known.hello.server

    def close_window(self, is_limiting: bool, delay: float) -> NodeLoad | None:
        """Close the second that ended ``delay`` seconds ago.

        :param is_limiting: any flow is limited on this node
        :return: the load to publish, or None
        """
        now = self.clock() - delay
        window = math.floor(now)
        if window == self._closed:
            return None
        at = self.monotonic()
        seconds = PERIOD if self._closed is None else max(round(at - self._closed_at), 1) * PERIOD
        self._closed, self._closed_at = window, at
        self.rows = tuple(self._close(seconds))
        objects = self._fastest()
        servers, self._servers = self._servers, {}
        sides = self._serving()
        if self.rows or is_limiting or sides != self._sides:
            self._trailing = _TRAILING_MESSAGES
        elif self._trailing:
            self._trailing -= 1
        elif at - self._sent_at < _IDLE_PERIOD:
            return None
        self._sides = sides
        self._sent_at = at
        self._number += 1
        return NodeLoad(
            self.node,
            float(window),
            self._started,
            self._number,
            server=self._server,
            capacity=self.capacity,
            sides=sides,
            gone=self._had_workers and not sides,
            rows=self.rows,
            objects=objects,
            policies=self._policies,
            servers={device: server for device, server in servers.items() if server and server != self._server},
        )

    def _fastest(self) -> tuple[MovedObject, ...]:
        """The objects with the highest rates over all workers, of each method."""
        rates: dict[ObjectKey, float] = {}
        for (_, place), rate in self._objects.items():
            rates[place] = rates.get(place, 0.0) + rate
        self._objects.clear()
        return fastest_objects(rates)

    def _serving(self) -> tuple[str, ...]:
        found = {worker.hello.side for worker in self._workers.values()}
        return tuple(side for side in SIDES if side in found)

    def _close(self, seconds: float) -> list[Load]:
        still = dict.fromkeys(place for worker in self._workers.values() for place in worker.open)
        sums, self._sums = self._sums, defaultdict(_WindowSum)
        return [_load(place, sums[place], place in still, seconds) for place in {**still, **sums}]


def _load(place: LoadKey, grown: _WindowSum, still: bool, seconds: float) -> Load:
    account, method, policy, container = place.flow
    return Load(
        place.side,
        account,
        container,
        method,
        policy,
        place.device,
        grown.moved / seconds,
        grown.busy / seconds,
        grown.held / seconds if still else 0.0,
    )


def disk_traffic(rows: tuple[Load, ...]) -> dict[Flow, tuple[float, float, float]]:
    """Flow → bytes per second, transfers open, transfers held back, over all devices of this node."""
    traffic: dict[Flow, tuple[float, float, float]] = {}
    for row in rows:
        if row.side == STORAGE_NODE:
            moved, active, held = traffic.get(row.flow, (0.0, 0.0, 0.0))
            traffic[row.flow] = moved + row.moved, active + row.open, held + row.waiting
    return traffic
