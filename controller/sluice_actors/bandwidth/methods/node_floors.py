"""Floors of each object server (``node_get_bw``), placed on that server and not where most of a flow's transfers are.

A tenant's demand up to its floor on an object server comes first there.  Where the floors on a server exceed its
capacity, they are cut in proportion.  The remaining capacity and demand are allocated as without node floors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.placement import place_rates, sort_parts
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, MaxMinAllocation, Side, SideAllocation
from sluice_actors.bandwidth.fairness.water_filling import water_fill_groups
from sluice_actors.bandwidth.methods.weights import CHUNK, GROWTH_ROOM, MIN_WAITING, SMALL_WEIGHT, FlowParts


def node_floor_demand(parts: FlowParts, value: FloatArray, groups: IntArray, waits: bool) -> FloatArray:
    """The demand of flows within their floors on each object server.

    :param parts: those at the object servers
    :param value: (flows,) bytes per second that each object server owes the flow, 0 for none
    :param groups: (flows,) the number of the objective that each flow is under; flows of one objective share its floor
    :param waits: bytes are held back at the object servers, so a flow whose transfers wait there demands its floor
    :returns: (parts,) bytes per second
    """
    value = value[parts.flow]
    index = np.flatnonzero(value > 0)
    wanted_floors = np.zeros(len(parts.flow))
    if not len(index):
        return wanted_floors
    node, stats = parts.node[index], parts.stats.select(index)
    keys, flow_node = np.unique(groups[parts.flow[index]] * (int(node.max()) + 1) + node, return_inverse=True)
    wants = np.maximum(stats.moved, stats.mean_moved) * GROWTH_ROOM + CHUNK
    if waits:
        wants = np.where(np.maximum(stats.waiting, stats.mean_waiting) > MIN_WAITING, np.inf, wants)
    weights = np.maximum(stats.open, SMALL_WEIGHT)
    wanted_floors[index] = value[index] * water_fill_groups(
        flow_node, weights, wants / value[index], np.ones(len(keys), dtype=bool)
    )
    return wanted_floors


def allocate_above_node_floors(problem: AllocationProblem, least: FloatArray) -> MaxMinAllocation:
    """Place node floors as far as they fit, and allocate the rest.

    :param least: (parts at the storage nodes,) bytes per second, of flows without copies
    """
    least = least * _fitting(problem.storage, least)
    wanted = np.bincount(problem.storage.flow, least, minlength=len(problem.floor))
    most = np.minimum(wanted, np.minimum(problem.ceiling, problem.demand))
    together = np.bincount(problem.tenant, most, minlength=len(problem.bound))
    most *= np.minimum(problem.bound / np.maximum(together, 1e-300), 1.0)[problem.tenant]
    there = sort_parts(problem.proxies)
    laid = place_rates(there, most)
    below = there.unsorted(laid.rates)
    sums = laid.carried
    least *= np.divide(sums, wanted, out=np.zeros_like(sums), where=wanted > 0)[problem.storage.flow]
    rest = allocate_max_min(
        replace(
            problem,
            floor=_without(problem.floor, sums),
            ceiling=_without(problem.ceiling, sums),
            demand=_without(problem.demand, sums),
            bound=_without(problem.bound, np.bincount(problem.tenant, sums, minlength=len(problem.bound))),
            proxies=_relieved(problem.proxies, below),
            storage=_relieved(problem.storage, least),
        )
    )
    return replace(
        rest,
        share=rest.share + sums,
        met=rest.met + sums,
        proxies=_raised(rest.proxies, below),
        storage=_raised(rest.storage, least),
    )


def _raised(side: SideAllocation, rates: FloatArray) -> SideAllocation:
    """``side`` with (parts,) ``rates`` added to its rates."""
    return replace(side, rates=side.rates + rates, floors=side.floors + rates)


def _fitting(side: Side, rates: FloatArray) -> FloatArray:
    """(parts,) the part of ``rates`` that nodes can carry, 0 to 1."""
    load = np.bincount(side.node, rates, minlength=len(side.capacity))
    found: FloatArray = np.minimum(side.capacity / np.maximum(load, 1e-300), 1.0)[side.node]
    return found


def _relieved(side: Side, rates: FloatArray) -> Side:
    """``side`` with the capacity that (parts,) ``rates`` leave."""
    load = np.bincount(side.node, rates, minlength=len(side.capacity))
    return replace(side, capacity=_without(side.capacity, load))


def _without(rates: FloatArray, taken: NDArray[Any]) -> FloatArray:
    found: FloatArray = np.maximum(rates - taken, 0.0)
    return found
