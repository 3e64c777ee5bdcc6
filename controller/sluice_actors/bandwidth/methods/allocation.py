"""The outcome of one round for one method: shares of flows, and their rates on nodes.

Rates are bytes per second of payload on the side in question; a negative rate on the wire means no limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import FlowNodeValues
from sluice_actors.bandwidth.loads.node_loads import LoadTable, Node
from sluice_actors.bandwidth.methods.demand import MethodDemand
from sluice_actors.bandwidth.methods.weights import FlowParts
from sluice_actors.bandwidth.share_encoder import ShareColumns
from sluice_core.messages.bandwidth import NO_CLASS

#: The rate of a flow that nothing holds back.
UNTHROTTLED: Final = -1.0
#: The least rate of a flow: at a rate of 0 clients would hang up, and no demand would show that the share is too small.
MIN_RATE: Final = 4096.0

#: Side and node → bytes per second that it carries, infinite if unknown.
Capacity = Callable[[str, Node], float]


@dataclass(frozen=True, slots=True)
class FlowNodeRates:
    """The rates of flows on nodes; ``node`` and ``flow_side`` as in ``ShareColumns``, rates infinite for no limit."""

    node: IntArray
    flow_side: IntArray
    rate: FloatArray


@dataclass(slots=True)
class MethodAllocation:
    """The result of one round for one method; by default nothing is held back."""

    table: LoadTable
    demands: MethodDemand
    governed: bool = False  #: whether Sluice throttles any flow of the method
    share: FloatArray = field(init=False)  #: (flows,) bytes per second, infinite for no limit
    met: FloatArray = field(init=False)  #: (flows,) the part of the floor that can be carried
    short: FloatArray = field(init=False)  #: (flows,) the part of the floor that is missing
    shares: list[ShareColumns] = field(default_factory=list)  #: for the nodes
    #: Their sum over a flow is its share, or more where capacity is left over.
    rates: list[FlowNodeRates] = field(default_factory=list)
    #: Position of a node → the rate with which a new flow begins there.
    newcomers: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.demands.flows)
        self.share, self.short = np.full(count, np.inf), np.zeros(count)
        self.met = self.demands.per_flow("floor")

    def add(self, shares: ShareColumns) -> None:
        """Add shares that are also rates."""
        self.shares.append(shares)
        rate = np.where(shares.rate < 0, np.inf, shares.rate)
        self.rates.append(FlowNodeRates(shares.node, shares.flow_side, rate))

    def assigned(self) -> FlowNodeValues:
        """The rate of each flow-node that has one."""
        if not self.rates:
            return FlowNodeValues()
        keys = [self.table.keys(rates.node, rates.flow_side) for rates in self.rates]
        return FlowNodeValues.from_unsorted(np.concatenate(keys), np.concatenate([rates.rate for rates in self.rates]))


def share_columns(
    demands: MethodDemand,
    parts: FlowParts,
    which: BoolArray,
    rate: FloatArray,
    floor: FloatArray,
    ceiling: FloatArray,
) -> ShareColumns:
    """The shares of the ``parts`` that ``which`` selects; the other arrays are (parts,) too."""
    own = [demand.objectives.own for demand in demands.flows]
    priority = np.array([NO_CLASS if one is None else one.priority for one in own], dtype=np.intp)
    index = np.flatnonzero(which)
    return ShareColumns(
        parts.node[index],
        parts.stats.flow_sides[index],
        rate[index],
        floor[index],
        ceiling[index],
        priority[parts.flow[index]],
    )


def add_priorities(allocation: MethodAllocation) -> None:
    """Give the side where nothing is held back the priorities of flows with objectives, for their disk I/O."""
    demands = allocation.demands
    there = demands.parts[demands.other_side]
    nothing = np.zeros(len(there.flow))
    promised = demands.promised()[there.flow]
    allocation.shares.append(share_columns(demands, there, promised, nothing + UNTHROTTLED, nothing, nothing))
