"""Allocates the bandwidth of the cluster: reports of nodes in, one round of shares a second out.

A round looks at each method by itself (which flows are active, which objectives hold for them, what nodes carry),
allocates, and encodes for each node the shares of the flows on it.  An allocator remembers what nodes reported lately,
what it assigned last, and estimates of capacities; another host knows all of that within seconds.

No I/O and no clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgpack import packb

from sluice_actors.bandwidth.failure_detector import FailureDetector
from sluice_actors.bandwidth.loads.node_loads import NodeLoads
from sluice_actors.bandwidth.loads.read_headroom import read_headroom
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_actors.bandwidth.loads.write_amplification import DEFAULT_AMPLIFICATION, WriteAmplification
from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.methods.controller_rates import ControllerRateTable
from sluice_actors.bandwidth.methods.method_allocator import MethodAllocator
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.reporter import Reporter
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
    governed: bool  #: whether anything is held back anywhere
    #: Makes the reports, which takes a while that shares need not wait for.
    make_reports: Callable[[], tuple[BandwidthReport, IdleFlowReport]]

    @cached_property
    def reports(self) -> tuple[BandwidthReport, IdleFlowReport]:
        """Both reports; to be read before the allocator is fed again."""
        return self.make_reports()


class Allocator:
    """:param groups: the members of groups
    :param host: the host that allocates, for reports
    :param amplification: bytes stored per byte of an upload, until that is measured
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
        self._reporter = Reporter(self._methods, self.objectives, self._amplification)

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Add the report of a node; see ``NodeLoads.feed``."""
        return self.loads.feed(load, arrived)

    def allocate(self, now: float, at: float = 0.0, term: int = 1, number: int | None = None) -> AllocationRound:
        """Make one round.

        :param now: seconds on our monotonic clock
        :param at: Unix time, for the messages
        :param term: the term of our ownership, for the messages
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
