"""Makes the two reports of a round: one of active flows, one of idle floors beside it.

Both contain the bandwidth that floors lack, now, and if all of them were demanded at once:

* *Now* is the part of the floors of active flows that the allocation could not meet.
* *At once* counts floors of targets by name, of members of groups, and of flows under ALL that were ever seen.  It is
  known when the capacities of all nodes of a side are configured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sluice_actors.bandwidth.capacity_estimator import CONFIGURED
from sluice_actors.bandwidth.loads.node_loads import FRESH_SECONDS, LoadTable
from sluice_actors.bandwidth.loads.write_amplification import WriteAmplification
from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.methods.method_allocator import MethodAllocator
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.idle_floors import FloorRegistry, IdleFloorRows, IdleFloors, parameter_of
from sluice_actors.bandwidth.reports.report import MAX_ROWS, TOLERANCE, device_rows, flow_rows, node_rows, object_rows
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import METHODS, PUT, SIDES, Objective
from sluice_core.messages.bandwidth_report import BandwidthReport, CachedJson, IdleFlowReport

#: Policy → parameter → bytes per second.
Shortfall = Mapping[str, Mapping[str, float]]


class BandwidthReporter:
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
        :param empty: the report without the results of the round
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


def overcommitment(
    allocation: MethodAllocation, idle: IdleFloors, carried: Mapping[str, float], copies: Callable[[int], float]
) -> float:
    """The part of all floors of one method that the cluster lacks if all of them are demanded at once.

    :param carried: side → capacity of all its nodes, infinite if unknown
    :param copies: bytes stored per byte of payload, by storage policy
    """
    floors = idle.floors()
    for demand in allocation.demands.flows:
        policy = demand.flow.policy
        floors[policy] = floors.get(policy, 0.0) + max(demand.floor, demand.promised)
    demanded = {
        PROXY: sum(floors.values()),
        STORAGE_NODE: sum(floor * copies(policy) for policy, floor in floors.items()),
    }
    return max([0.0, *(1.0 - carried[side] / total for side, total in demanded.items() if total > 0)])


def floor_shortfall(
    allocations: Mapping[str, MethodAllocation], idle: Mapping[str, IdleFloors], lacking: Mapping[str, float]
) -> Shortfall:
    """The bandwidth that floors lack now, or would lack if all were demanded at once, whichever is more.

    :param lacking: method → :func:`overcommitment`
    """
    missing: dict[str, dict[str, float]] = {}
    for method, allocation in allocations.items():
        part = lacking.get(method, 0.0)
        terms = idle[method].terms() if part > TOLERANCE else {}
        later = {term: floor * part for term, floor in terms.items()}
        now: dict[tuple[str, str], float] = {}
        for demand, short in zip(allocation.demands.flows, allocation.short.tolist(), strict=True):
            own = demand.objectives.own
            if own is not None:
                if part > TOLERANCE:
                    _add(later, own, max(demand.floor, demand.promised) * part)
                if short > TOLERANCE * demand.floor:
                    _add(now, own, short)
        for policy, parameter in {**later, **now}:
            key = policy, parameter
            missing.setdefault(policy, {})[parameter] = max(later.get(key, 0.0), now.get(key, 0.0))
    return {policy: missing[policy] for policy in sorted(missing)}


def _add(sums: dict[tuple[str, str], float], own: Objective, missing: float) -> None:
    if missing > 0:
        key = own.policy, parameter_of(own)
        sums[key] = sums.get(key, 0.0) + missing
