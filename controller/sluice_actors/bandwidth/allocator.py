"""Allocates the bandwidth of the cluster: takes the reports of nodes, and makes one round of shares a second.

A round handles each method by itself (which flows are active, which objectives hold for them, what nodes carry),
allocates, and encodes for each node the shares of the flows on it.  An allocator remembers the last reports of nodes,
the shares that it assigned last, and estimates of capacities; another host learns all of that within seconds.

No I/O and no clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from msgpack import packb

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.failure_detector import FailureDetector
from sluice_actors.bandwidth.loads.node_loads import LoadTable, NodeLoads
from sluice_actors.bandwidth.loads.write_amplification import DEFAULT_AMPLIFICATION, WriteAmplification
from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.methods.method_allocator import ControllerRateTable, MethodAllocator
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.reporter import BandwidthReporter
from sluice_actors.bandwidth.share_encoder import SharePrefixes, concatenate, encode_shares, pack_shares
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import ALLOCATED_METHODS, GET, METHODS, NodeLoad, Shares
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport

#: Seconds that one round may stand for.
_SHORTEST, _LONGEST = 0.2, 5.0


@dataclass(frozen=True, eq=False)
class AllocationRound:
    """The outcome of one round."""

    messages: Mapping[str, bytes]  #: node → its shares, encoded
    governed: bool  #: whether Sluice throttles any flow on any node
    #: Makes the reports; shares are sent before that, because it takes a while.
    make_reports: Callable[[], tuple[BandwidthReport, IdleFlowReport]]

    @cached_property
    def reports(self) -> tuple[BandwidthReport, IdleFlowReport]:
        """Both reports; read them before the allocator is fed again."""
        return self.make_reports()


class Allocator:
    """:param groups: the members of groups
    :param host: the host that allocates, for reports
    :param amplification: bytes stored per byte of an upload, until the allocator has measured it
    """

    def __init__(
        self, groups: GroupIndex | None = None, host: str = "", amplification: float = DEFAULT_AMPLIFICATION
    ) -> None:
        self.loads = NodeLoads()
        self.objectives = Objectives(GroupIndex() if groups is None else groups)
        self._host = host
        self._number = 0
        self._last: float | None = None
        self._amplification = WriteAmplification(amplification)
        self._failures = FailureDetector()
        self._prefixes = SharePrefixes(self.loads.flow_index)
        self._methods = {method: MethodAllocator(method) for method in METHODS}
        self.controller_rates = ControllerRateTable()
        self._reporter = BandwidthReporter(self._methods, self.objectives, self._amplification)

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Add the report of a node; see ``NodeLoads.feed``."""
        return self.loads.feed(load, arrived)

    def allocate(self, now: float, at: float = 0.0, term: int = 1, number: int | None = None) -> AllocationRound:
        """Make one round.

        :param now: seconds on this host's monotonic clock
        :param at: Unix time, for the messages
        :param term: the term of this host's ownership, for the messages
        :param number: of the round, for the messages; by default the next one
        """
        began = time.perf_counter()
        self._number = self._number + 1 if number is None else number
        seconds = 1.0 if self._last is None else min(max(now - self._last, _SHORTEST), _LONGEST)
        self._last = now
        self._forget(now)
        objectives = self.objectives
        objectives.set_policy_names(self.loads.policies)
        answers = {method: self.controller_rates.current(method, now) for method in ALLOCATED_METHODS}
        held = [
            (method, objectives.side(method))
            for method in ALLOCATED_METHODS
            if answers[method] or objectives.governs(method)
        ]
        table = LoadTable.from_loads(self.loads, self._failures.detect(self.loads, now, held))
        self._amplification.update(table, seconds)
        allocations = {
            name: method.allocate(table, objectives, self._amplification, now, seconds, answers.get(name))
            for name, method in self._methods.items()
        }
        messages = self._messages(table, allocations, at, term)
        throttled = any(allocation.governed for allocation in allocations.values())
        took = round(time.perf_counter() - began, 6)
        controllers = {method: answer.controller for method, answer in answers.items() if answer is not None}
        sides = {method: objectives.side(method) for method in METHODS}
        empty = BandwidthReport(at, self._host, term, self._number, took=took, controllers=controllers, sides=sides)
        report, policies = self._reporter.report, self.loads.policies
        return AllocationRound(messages, throttled, lambda: report(table, allocations, policies, now, empty))

    def _forget(self, now: float) -> None:
        moved = self.loads.forget(now)
        if moved is not None:
            self._prefixes = SharePrefixes(self.loads.flow_index)
            for method in self._methods.values():
                method.renumber(moved)

    def _messages(
        self, table: LoadTable, allocations: Mapping[str, MethodAllocation], at: float, term: int
    ) -> dict[str, bytes]:
        headroom = packb(self._read_headroom(table) if allocations[GET].governed else {})
        nothing = packb({})
        shares = [each for allocation in allocations.values() for each in allocation.shares]
        rows = [(0, b"")] * len(table.nodes)
        if shares:
            rows = pack_shares(concatenate(shares), self._prefixes, len(table.nodes))
        messages = {}
        for position, (node, (count, raw)) in enumerate(zip(table.nodes, rows, strict=True)):
            newcomer: dict[str, dict[str, float]] = {}
            for method, allocation in allocations.items():
                if position in allocation.newcomers:
                    newcomer.setdefault(allocation.demands.side, {})[method] = allocation.newcomers[position]
            message = Shares(node.name, term, self._number, at, newcomer=newcomer)
            messages[node.name] = encode_shares(message, count, raw, headroom if node.serves(PROXY) else nothing)
        return messages

    def _read_headroom(self, table: LoadTable) -> dict[str, float]:
        """``ip:port`` of each object server whose capacity is known → its headroom for reading, 0 to 1."""
        get = self._methods[GET]
        capacity = [get.capacity(STORAGE_NODE, node) if node.serves(STORAGE_NODE) else math.inf for node in table.nodes]
        return read_headroom(table, np.array(capacity, dtype=np.float64))


# The headroom of object servers for reading, by which proxies choose among replicas.
#
# The headroom of a server is the unused part of its capacity. Where it is close to the unused part of all servers
# together, it is set to just that: small differences are noise, and proxies that follow noise amplify it.
#
# When the object servers hold back downloads, all of them may be used up. Clients that choose a server at random keep
# sending requests to a full one, so the number of transfers that wait at each server is a random walk, until a
# server has none and its bandwidth is idle. Shares cannot correct that. Proxies can, if servers where fewer transfers
# wait report a little more headroom.

#: A smaller difference to the unused part of all servers is noise.
_NOISE: Final = 0.075
#: The headroom of a used-up server with as many waiting transfers as others, and how much less it is with twice as
#: many.  A greater difference would oscillate, as proxies learn of it two seconds late.
_USED_UP: Final = 0.5
_LESS: Final = 0.1
#: The number of waiting transfers is extrapolated by this part of the way from the mean to the last second.
_LEAD: Final = 0.4
_DIGITS: Final = 3


def read_headroom(table: LoadTable, capacity: FloatArray) -> dict[str, float]:
    """``ip:port`` of each object server with an address and a known capacity → 0 to 1.

    :param capacity: (nodes,) bytes per second, infinite if unknown
    """
    stats = table.stats
    moved = table.per_node(GET, STORAGE_NODE, stats.mean_moved)
    waiting = np.maximum(stats.waiting + _LEAD * (stats.waiting - stats.mean_waiting), 0.0)
    which = np.isfinite(capacity) & np.array([bool(node.server) for node in table.nodes], dtype=bool)
    held = np.where(which, table.per_node(GET, STORAGE_NODE, waiting), 0.0)
    everywhere, carried = float(held.sum()), float(capacity[which].sum())
    room = 1.0 - moved / capacity
    usual = 1.0 - float(moved[which].sum()) / carried if carried > 0 else 0.0
    room = np.where(np.abs(room - usual) < _NOISE, usual, room)
    if everywhere > 0:
        crowd = held / np.maximum(everywhere * capacity / carried, 1.0)
        room = np.maximum(room, _USED_UP - _LESS * (crowd - 1.0))
    rounded = np.round(np.clip(room, 0.0, 1.0), _DIGITS).tolist()
    return {table.nodes[position].server: rounded[position] for position in np.flatnonzero(which).tolist()}
