"""Makes the two reports of a round: one of what is active, one of idle floors beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sluice_actors.bandwidth.capacity_estimator import CONFIGURED
from sluice_actors.bandwidth.loads.node_loads import FRESH_SECONDS
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_actors.bandwidth.loads.write_amplification import WriteAmplification
from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.methods.method_allocator import MethodAllocator
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.idle_floors import FloorRegistry
from sluice_actors.bandwidth.reports.idle_report import IdleFloorRows
from sluice_actors.bandwidth.reports.report import MAX_ROWS, device_rows, flow_rows, node_rows, object_rows
from sluice_actors.bandwidth.reports.shortfall import Shortfall, floor_shortfall, overcommitment
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import METHODS, PUT, SIDES
from sluice_core.messages.bandwidth_report import BandwidthReport, CachedJson, IdleFlowReport


class Reporter:
    """:param methods: the allocator of each method
    :param objectives: those in force
    :param amplification: bytes stored per byte of an upload
    """

    def __init__(
        self, methods: Mapping[str, MethodAllocator], objectives: Objectives, amplification: WriteAmplification
    ) -> None:
        self._methods = methods
        self._objectives = objectives
        self._amplification = amplification
        self._floors = {method: FloorRegistry(method) for method in METHODS}
        self._idle_rows = IdleFloorRows()
        self._lacking, self._infeasible = CachedJson(), CachedJson()

    def report(
        self,
        table: LoadTable,
        allocations: Mapping[str, MethodAllocation],
        policies: Mapping[str, str],
        now: float,
        empty: BandwidthReport,
    ) -> tuple[BandwidthReport, IdleFlowReport]:
        """The reports of a round.

        :param policies: index of a storage policy, as text → name
        :param now: seconds on our monotonic clock
        :param empty: the report without what the round brought
        """
        servers = len(table.serving(STORAGE_NODE))
        idle = {
            method: self._floors[method].update(allocation, self._objectives, servers)
            for method, allocation in allocations.items()
        }
        lacking = {
            method: overcommitment(allocation, idle[method], self._carried(method, table), self._copies(method))
            for method, allocation in allocations.items()
            if self._objectives.has_floors(method)
        }
        self._keep_shortfall(floor_shortfall(allocations, idle, lacking))
        fresh = np.array([now - node.arrived <= FRESH_SECONDS for node in table.nodes], dtype=bool)
        capacities = {
            (side, name, node.name): method.capacity_and_source(side, node)
            for name, method in self._methods.items()
            for side in SIDES
            for node in table.nodes
        }
        assigned = {name: method.assigned for name, method in self._methods.items()}
        active, left_out = flow_rows(allocations, fresh)
        promises = self._idle_rows.update(idle, lacking, MAX_ROWS["flows"])
        shown = min(self._idle_rows.count(idle), MAX_ROWS["flows"] - len(active))
        left_out += sum(floors.count() for floors in idle.values()) - shown
        lists = {
            "flows": (active, left_out),
            "nodes": node_rows(table, allocations, capacities, fresh),
            "parts": device_rows(table, allocations, assigned, fresh),
            "objects": object_rows(table, fresh),
        }
        rows: dict[str, Any] = {name: tuple(rows) for name, (rows, _) in lists.items()}
        report = replace(
            empty,
            **rows,
            left_out={name: more for name, (_, more) in lists.items() if more},
            infeasible=self._infeasible,
            lacking=self._lacking,
            policies=dict(policies),
            promises=promises.digest,
            idle=shown,
        )
        return report, promises

    def _keep_shortfall(self, shortfall: Shortfall) -> None:
        """Keep the shortfall and its JSON while it stays the same."""
        if shortfall != self._lacking:
            self._lacking = CachedJson(shortfall)
            self._infeasible = CachedJson({policy: sum(parts.values()) for policy, parts in shortfall.items()})

    def _carried(self, method: str, table: LoadTable) -> dict[str, float]:
        """Side → capacity of its nodes, infinite when that of any node is not configured."""
        totals = {}
        for side in SIDES:
            known = [self._methods[method].capacity_and_source(side, node) for node in table.nodes if node.serves(side)]
            sure = known and all(source == CONFIGURED for _, source in known)
            totals[side] = sum(capacity for capacity, _ in known) if sure else math.inf
        return totals

    def _copies(self, method: str) -> Callable[[int], float]:
        """Storage policy → bytes stored per byte of payload."""
        return lambda policy: self._amplification.factor(max(policy, 0)) if method == PUT else 1.0
