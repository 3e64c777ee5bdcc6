"""What is missing to meet all floors: now, and should all of them be demanded at once.

* *Now* is the part of the floors of active flows that the allocation could not meet.
* *At once* counts floors of targets by name, of members of groups, and of flows under ALL that were ever seen.  It is
  known when the capacities of all nodes of a side are configured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.reports.idle_floors import IdleFloors, parameter_of
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import Objective

#: A floor that lacks less than this part of itself is met.
TOLERANCE: Final = 0.01

#: Policy → parameter → bytes per second.
Shortfall = Mapping[str, Mapping[str, float]]


def asked_rates(own: Objective | None) -> dict[str, float]:
    """What a flow's own objective asks for, by the names of a report's fields; nothing without one."""
    return {} if own is None else {"asked": own.floor, "node_asked": own.node_floor}


def overcommitment(
    allocation: MethodAllocation, idle: IdleFloors, carried: Mapping[str, float], copies: Callable[[int], float]
) -> float:
    """The part of all floors of one method that the cluster lacks, should all of them be demanded at once.

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
    """The bandwidth that is missing now, or would be if all floors were demanded at once, whichever is more.

    :param lacking: method → :func:`overcommitment`
    """
    found: dict[str, dict[str, float]] = {}
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
            found.setdefault(policy, {})[parameter] = max(later.get(key, 0.0), now.get(key, 0.0))
    return {policy: found[policy] for policy in sorted(found)}


def _add(sums: dict[tuple[str, str], float], own: Objective, missing: float) -> None:
    if missing > 0:
        key = own.policy, parameter_of(own)
        sums[key] = sums.get(key, 0.0) + missing
