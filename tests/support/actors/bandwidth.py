"""For tests of the allocation: short assignments, and a small cluster that moves as many bytes as it may.

The cluster has a virtual clock.  Each second every flow moves the bytes that its clients request and its shares allow,
at most what each node can carry, and all nodes report the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sluice_actors.bandwidth.allocator import AllocationRound, Allocator
from sluice_actors.bandwidth.fairness.water_filling import water_fill
from sluice_actors.bandwidth.loads.node_loads import NodeLoads
from sluice_core.describe import BANDWIDTH, PROXY, REPLICATION, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Flow, Load, NodeLoad, Share, Shares
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.messages.policies import CLUSTER, Assignment, Target
from sluice_core.testing import assignment

MB = 1e6
#: Transfers of one tenant at one proxy, unless the test sets another number.
TRANSFERS = 4.0


def bandwidth_policy(
    path: str, assignment_id: str = "", place: str = PROXY, target: Target | None = None, **params: Any
) -> Assignment:
    """The assignment of ``SET bandwidth``; its policy is named by the path, numbers are MB/s."""
    given = {name: value * MB if isinstance(value, int | float) else value for name, value in params.items()}
    return assignment(
        assignment_id or f"{path}.0", path, "bandwidth", BANDWIDTH, params=given, place=place, target=target
    )


def replication_cap(rate: float) -> Assignment:
    """The assignment of ``SET replication WITH max_bw=``, in MB/s."""
    target = Target(CLUSTER, "all")
    params = {"max_bw": rate * MB}
    return assignment("cap.0", "", "replication", REPLICATION, params=params, place=STORAGE_NODE, target=target)


def node_load(node: str, number: int, *rows: Load, started: float = 1.0, **more: Any) -> NodeLoad:
    """The report of ``node``."""
    return NodeLoad(node, float(number), started, number, rows=rows, **more)


def flow_row(account: str, moved: float, side: str = PROXY, **more: Any) -> Load:
    """One flow of downloads, in MB/s; as many transfers open as usual, half of them waiting."""
    given = {"container": "", "method": GET, "policy": 0, "device": "", "open": TRANSFERS, "waiting": 2.0, **more}
    return Load(side=side, account=account, moved=moved * MB, **given)


@lru_cache(maxsize=2)
def report_of(made: AllocationRound) -> BandwidthReport:
    """The report of a round with the rows of idle floors, as the API shows it."""
    report, promises = made.reports
    return report.with_idle(promises)


@lru_cache(maxsize=2)
def shares_of(made: AllocationRound) -> dict[str, Shares]:
    """Node → its shares, as it decodes them."""
    return {node: Shares.decode(body) for node, body in made.messages.items()}


class FlowStat(NamedTuple):
    """One column of ``FlowStats``."""

    moved: float = 0.0
    open: float = 0.0
    waiting: float = 0.0
    mean_moved: float = 0.0
    mean_open: float = 0.0
    mean_waiting: float = 0.0
    idle: float = 0.0


def flow_stat(loads: NodeLoads, node: str, side: str, flow: Flow) -> FlowStat | None:
    """The figures of a flow on one side of one node."""
    stats = loads.nodes[node].stats
    at = np.flatnonzero(stats.flow_sides == loads.flow_index.flow_side(side, flow))
    return FlowStat(*stats.values[:, at[0]].tolist()) if len(at) else None


@dataclass
class Cluster:
    """Proxies and storage nodes, by name → what they can carry (MB/s) and what they report.

    ``asks`` maps a tenant to the rate that its clients request at each proxy (MB/s, infinite: all that they get),
    ``lies`` to the part of its bytes on each storage node.
    """

    proxies: dict[str, float]
    storage: dict[str, float]
    asks: dict[str, dict[str, float]] = field(default_factory=dict)
    lies: dict[str, dict[str, float]] = field(default_factory=dict)
    known: bool = True
    method: str = GET
    copies: float = 1.0
    now: float = 100.0
    number: int = 0
    allocator: Allocator = field(default_factory=Allocator)
    last: AllocationRound | None = None

    def set_policies(self, *assignments: Assignment) -> None:
        """Set exactly these policies."""
        self.allocator.objectives.replace(assignments)

    def run(self, seconds: int) -> dict[str, float]:
        """Tenant → its bytes in the last second, in MB/s."""
        moved: dict[str, float] = {}
        for _ in range(seconds):
            moved = self._second()
        return moved

    def _second(self) -> dict[str, float]:
        self.now += 1.0
        self.number += 1
        waits: dict[tuple[str, str], bool] = {}
        moves: dict[tuple[str, str], float] = {}
        for account, places in self.asks.items():
            for proxy, asked in places.items():
                may = self._may(PROXY, proxy, account)
                moves[account, proxy] = min(asked, may, 1e4)
                waits[account, proxy] = asked > may
        self._hold(moves)
        for name, carries in self.proxies.items():
            rows = tuple(
                Load(PROXY, account, "", self.method, 0, "", moved * MB, TRANSFERS, 2.0 * waits[account, proxy])
                for (account, proxy), moved in moves.items()
                if proxy == name
            )
            self._tell(name, PROXY, carries, rows)
        sums: dict[str, float] = {}
        for (account, _), moved in moves.items():
            sums[account] = sums.get(account, 0.0) + moved
        for name, carries in self.storage.items():
            rows = tuple(
                Load(
                    STORAGE_NODE, account, "", self.method, 0, "sdb1", moved * self._part(account, name) * MB, 2.0, 0.0
                )
                for account, moved in sums.items()
                if self._part(account, name)
            )
            self._tell(name, STORAGE_NODE, carries, rows)
        self.last = self.allocator.allocate(self.now + 0.18, self.now)
        return sums

    def _part(self, account: str, name: str) -> float:
        """Bytes at this storage node per byte of payload."""
        lies: Mapping[str, float] = self.lies.get(account) or dict.fromkeys(self.storage, 1 / len(self.storage))
        return lies.get(name, 0.0) * self.copies

    def _hold(self, moves: dict[tuple[str, str], float]) -> None:
        """Limit each node to its capacity; a flow below an equal part gets all it requests."""
        for _ in range(3):
            for name, carries in self.proxies.items():
                here = {key: moved for key, moved in moves.items() if key[1] == name}
                _slow(moves, dict.fromkeys(here, 1.0), carries)
            for name, carries in self.storage.items():
                _slow(moves, {key: self._part(key[0], name) for key in moves}, carries)

    def _tell(self, name: str, side: str, carries: float, rows: tuple[Load, ...]) -> None:
        capacity = {side: {self.method: carries * MB}} if self.known else {}
        told = node_load(name, self.number, *rows, sides=(side,), capacity=capacity, server=f"{name}:6200")
        self.allocator.feed(told, self.now + 0.07)

    def _may(self, side: str, node: str, account: str) -> float:
        shares = None if self.last is None else shares_of(self.last).get(node)
        if shares is None:
            return math.inf
        found = share(shares.rows, side, Flow(account, self.method))
        if found is not None:
            return found.rate / MB if found.rate >= 0 else math.inf
        return shares.newcomer.get(side, {}).get(self.method, math.inf * MB) / MB


def share(rows: tuple[Share, ...], side: str, flow: Flow) -> Share | None:
    """A flow's share on one side, among those of a node."""
    return next((one for one in rows if one.side == side and one.flow == flow), None)


def _slow(moves: dict[tuple[str, str], float], parts: Mapping[tuple[str, str], float], carries: float) -> None:
    here = [key for key, part in parts.items() if part]
    asked = [moves[key] * parts[key] for key in here]
    if sum(asked) > carries:
        for key, rate in zip(here, water_fill(carries, [1.0] * len(here), asked), strict=True):
            moves[key] = rate / parts[key]
