"""Clients in a closed loop before object servers that throttle: chunk by chunk, on a virtual clock.

Each connection requests one object after the other.  The place of the object is drawn each time, proxies choose one
of these servers, and the connection stays there until the whole object arrived: so connections accumulate at slow
servers.  Servers report each second and get their shares soon after it, and workers request credit from their node's
limiter in advance, all as in production; limiter, account and choice are given, since they belong to other packages.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from tests.support.actors.bandwidth import shares_of

from sluice_actors.bandwidth.allocator import Allocator
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Flow, Load, NodeLoad, Shares
from sluice_core.messages.credit import CreditGrant, CreditRequest

CHUNK: Final = 65536
#: Seconds after the full second: a node's report, the round, and when shares are in force.
REPORTED: Final = 0.07
DIVIDED: Final = 0.15
IN_FORCE: Final = 0.2
#: When proxies' workers get the spares of servers: their agents send them with the next second's update.
HEADROOM_KNOWN: Final = 1.07
#: Seconds from one object to the next, and for a chunk with credit.
BETWEEN: Final = 0.01
PASSES: Final = 0.0005
#: Shortest and longest pause of an agent while a worker waits.
SHORTEST: Final = 0.002
LONGEST: Final = 0.05


class NodeLimiter(Protocol):
    """As ``sluice_agent.bandwidth.node_limiter.NodeLimiter``."""

    def set_shares(self, shares: Shares, now: float) -> None: ...

    def add_worker(self, worker: str, side: str) -> None: ...

    def request(self, worker: str, request: CreditRequest, now: float) -> None: ...

    def due_grants(self, now: float) -> Mapping[str, list[CreditGrant]]: ...

    def seconds_until_due(self, now: float) -> float | None: ...

    def workers_to_renegotiate(self) -> list[str]: ...


class Account(Protocol):
    """As a worker's."""

    requested: int

    def try_charge(self, size: int) -> bool: ...

    def bytes_to_request(self, needs: int = 0) -> int: ...

    def grant(self, size: int, rate: float) -> None: ...

    def release_surplus(self) -> int: ...

    def require_credit(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Components:
    """Parts of other packages: how to create a node's limiter, and a worker's account of a flow with a clock.

    ``drawn`` sorts the servers of an object (``ip`` and ``port``) by their spares and chance.
    """

    limiter: Callable[[], NodeLimiter]
    account: Callable[[Flow, Callable[[], float]], Account]
    drawn: Callable[[Sequence[Mapping[str, Any]], Mapping[str, float], Callable[[], float]], list[Mapping[str, Any]]]


@dataclass(slots=True)
class _FlowQueue:
    """One flow at one server."""

    flow: Flow
    account: Account
    queue: deque[_Connection] = field(default_factory=deque)
    open: int = 0
    moved: float = 0.0
    busy: float = 0.0
    held: float = 0.0
    at: float = 0.0

    def turn(self, now: float) -> None:
        """Count up to now."""
        self.busy += self.open * (now - self.at)
        self.held += len(self.queue) * (now - self.at)
        self.at = now

    def told(self, now: float) -> Load:
        """The counts of the last second, which are reset."""
        self.turn(now)
        waiting = self.held if self.open else 0.0
        load = Load(STORAGE_NODE, *_names(self.flow), "sdb1", self.moved, self.busy, waiting)
        self.moved = self.busy = self.held = 0.0
        return load


@dataclass(slots=True)
class _Connection:
    """A client of a tenant; ``left`` bytes of its object remain, ``size`` of them are requested now."""

    account: str
    flow_queue: _FlowQueue | None = None
    left: int = 0
    size: int = 0


@dataclass(slots=True)
class _Server:
    name: str
    capacity: float
    limiter: NodeLimiter
    queues: dict[str, _FlowQueue] = field(default_factory=dict)
    serving: int = 0  #: number of the only valid timer


class Loop:
    """``tenants`` maps an account to its connections, ``sizes`` draws an object's bytes, ``servers`` are capacities."""

    def __init__(
        self,
        allocator: Allocator,
        components: Components,
        servers: Iterable[float],
        tenants: Mapping[str, int],
        sizes: Callable[[np.random.Generator], int],
        random: np.random.Generator,
        popular: Sequence[float] | None = None,
        copies: int = 3,
    ) -> None:
        """
        :param popular: how often objects are stored on each server; None: all equally
        :param copies: the number of servers of an object
        """
        self.allocator, self.components, self.random, self.sizes = allocator, components, random, sizes
        self.now = 1000.0
        self.servers = [_Server(f"s{place}", rate, components.limiter()) for place, rate in enumerate(servers)]
        odds = np.ones(len(self.servers)) if popular is None else np.array(popular, dtype=np.float64)
        self._odds = np.log(odds / odds.sum())
        self._copies = min(copies, len(self.servers))
        self._spares: Mapping[str, float] = {}
        self._nodes = [{"ip": server.name, "port": 6200, "place": place} for place, server in enumerate(self.servers)]
        self.moved: dict[str, float] = dict.fromkeys(tenants, 0.0)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._number = 0
        for server in self.servers:
            server.limiter.add_worker("w", STORAGE_NODE)
        for account, connections in tenants.items():
            for _ in range(connections):
                one = _Connection(account)
                self._at(self.now + float(random.random()), lambda one=one: self._begin(one))  # type: ignore[misc]
        self._at(self.now + 1.0, self._second)

    def seconds(self, count: int) -> list[dict[str, float]]:
        """Tenant → bytes, for each of the next seconds."""
        found = []
        for _ in range(count):
            self._run(round(self.now) + 1.0)
            found.append(dict(self.moved))
            self.moved = dict.fromkeys(self.moved, 0.0)
        return found

    def _at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def _run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = until

    # -- clients

    def _begin(self, one: _Connection) -> None:
        server = self._choose()
        flow_queue = server.queues.get(one.account)
        if flow_queue is None:
            flow = Flow(one.account, GET)
            flow_queue = server.queues[one.account] = _FlowQueue(
                flow, self.components.account(flow, lambda: self.now), at=self.now
            )
        flow_queue.turn(self.now)
        flow_queue.open += 1
        one.flow_queue, one.left = flow_queue, self.sizes(self.random)
        self._chunk(server, one)

    def _choose(self) -> _Server:
        keys = self._odds + self.random.gumbel(size=len(self.servers))
        nodes = [self._nodes[place] for place in np.argsort(-keys)[: self._copies]]
        first = self.components.drawn(nodes, self._spares, self.random.random)[0]
        return self.servers[int(first["place"])]

    def _chunk(self, server: _Server, one: _Connection) -> None:
        flow_queue = one.flow_queue
        assert flow_queue is not None
        if one.left <= 0:
            self._end(server, flow_queue, one)
            return
        one.size = min(CHUNK, one.left)
        if not flow_queue.queue and flow_queue.account.try_charge(one.size):
            self._passes(server, one)
        else:
            flow_queue.turn(self.now)
            flow_queue.queue.append(one)
        self._ask(server, flow_queue)

    def _end(self, server: _Server, flow_queue: _FlowQueue, one: _Connection) -> None:
        flow_queue.turn(self.now)
        flow_queue.open -= 1
        if not flow_queue.open and (size := flow_queue.account.release_surplus()):
            server.limiter.request("w", CreditRequest(*_names(flow_queue.flow), -size), self.now)
            self._serve_soon(server)
        self._at(self.now + BETWEEN, lambda: self._begin(one))

    def _passes(self, server: _Server, one: _Connection) -> None:
        assert one.flow_queue is not None
        one.flow_queue.moved += one.size
        self.moved[one.account] += one.size
        one.left -= one.size
        self._at(self.now + PASSES, lambda: self._chunk(server, one))

    # -- workers and agents

    def _ask(self, server: _Server, flow_queue: _FlowQueue) -> None:
        size = flow_queue.account.bytes_to_request(sum(one.size for one in flow_queue.queue))
        if size > 0:
            flow_queue.account.requested += size
            server.limiter.request("w", CreditRequest(*_names(flow_queue.flow), size, len(flow_queue.queue)), self.now)
            self._serve_soon(server)

    def _serve_soon(self, server: _Server, pause: float = 0.0002) -> None:
        server.serving += 1
        number = server.serving
        self._at(self.now + pause, lambda: self._serve(server, number))

    def _serve(self, server: _Server, number: int) -> None:
        if number != server.serving:
            return
        for rows in server.limiter.due_grants(self.now).values():
            for given in rows:
                flow_queue = server.queues[given.account]
                flow_queue.account.grant(given.size, given.rate)
                flow_queue.turn(self.now)
                while flow_queue.queue and flow_queue.account.try_charge(flow_queue.queue[0].size):
                    self._passes(server, flow_queue.queue.popleft())
                self._ask(server, flow_queue)
        due = server.limiter.seconds_until_due(self.now)
        if due is not None:
            self._serve_soon(server, min(max(due, SHORTEST), LONGEST))

    # -- every second

    def _second(self) -> None:
        self._number += 1
        start = round(self.now)
        totals: dict[str, list[float]] = {}
        for server in self.servers:
            rows = tuple(flow_queue.told(self.now) for flow_queue in server.queues.values())
            rows = tuple(row for row in rows if row.open or row.moved)
            for row in rows:
                sums = totals.setdefault(row.account, [0.0, 0.0])
                sums[0] += row.moved
                sums[1] += row.open
            self._tell(server.name, STORAGE_NODE, server.capacity, rows)
        for name in ("p0", "p1"):
            counted = (Load(PROXY, *_names(Flow(one, GET)), "", a / 2, b / 2, 0.0) for one, (a, b) in totals.items())
            self._tell(name, PROXY, 1e9, tuple(counted))
        self._at(start + DIVIDED, self._divide)
        self._at(start + 1.0, self._second)

    def _tell(self, name: str, side: str, capacity: float, rows: tuple[Load, ...]) -> None:
        load = NodeLoad(
            name,
            self.now,
            0.0,
            self._number,
            server=f"{name}:6200" if side == STORAGE_NODE else "",
            capacity={side: {GET: capacity}},
            sides=(side,),
            rows=rows,
        )
        self._at(self.now + REPORTED, lambda: self._feed(load))

    def _feed(self, load: NodeLoad) -> None:
        self.allocator.feed(load, self.now)

    def _divide(self) -> None:
        shares = shares_of(self.allocator.allocate(self.now))
        self._at(self.now - DIVIDED + IN_FORCE, lambda: self._take(shares))
        self._at(self.now - DIVIDED + HEADROOM_KNOWN, lambda: self._hear(shares["p0"].spares))

    def _hear(self, spares: Mapping[str, float]) -> None:
        self._spares = spares

    def _take(self, shares: Mapping[str, Shares]) -> None:
        for server in self.servers:
            server.limiter.set_shares(shares[server.name], self.now)
            if server.limiter.workers_to_renegotiate():
                for flow_queue in server.queues.values():
                    flow_queue.account.require_credit()
                    self._ask(server, flow_queue)
            self._serve_soon(server)


def _names(flow: Flow) -> tuple[str, str, str, int]:
    return flow.account, flow.container, flow.method, flow.policy
