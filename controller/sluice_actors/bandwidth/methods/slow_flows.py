"""Flows that move less than their floor for some seconds count as short of it.

That holds for a flow that waits for us, and for one on whose nodes at least as much is replicated as the flow lacks:
without a cap nothing holds back replication, and it uses the same disks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import REPLICATION, Flow

#: A flow is short after it has moved less than this part of its floor for so many seconds.
_SLOW: Final = 0.9
_SLOW_SECONDS: Final = 4.0
#: Mean open transfers of a flow that could move its floor, and the part of them that waits for us.
_MIN_OPEN, _MIN_WAITING = 0.9, 0.1


@dataclass(slots=True)
class SlowFlows:
    """Remembers since when flows of one method are slow."""

    _since: dict[Flow, float] = field(default_factory=dict)

    def apply(self, allocation: MethodAllocation, now: float) -> None:
        """Set what is met and what is short of the floors of slow flows."""
        demands, table = allocation.demands, allocation.table
        floors = np.minimum(allocation.met, demands.per_flow("ceiling"))
        moved, opened = demands.per_flow("mean_moved"), demands.per_flow("mean_open")
        slow = np.flatnonzero((floors > 0) & (moved < _SLOW * floors) & (opened >= _MIN_OPEN)).tolist()
        before, self._since = self._since, {}
        copied = table.per_node(REPLICATION, STORAGE_NODE, table.stats.mean_moved) if slow else np.empty(0)
        for index in slow:
            demand = demands.flows[index]
            missing = float(floors[index] - moved[index])
            nodes = demands.parts[STORAGE_NODE].nodes_of(index)
            waits = demand.mean_waiting > _MIN_WAITING * demand.mean_open
            if waits or float(copied[nodes].sum()) >= missing:
                since = self._since[demand.flow] = before.get(demand.flow, now)
                if now - since >= _SLOW_SECONDS:
                    allocation.short[index] = demand.floor - moved[index]
                    allocation.met[index] = moved[index]
