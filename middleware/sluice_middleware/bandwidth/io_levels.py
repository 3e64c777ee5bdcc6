"""The agent's messages besides credit: I/O levels of flows, spare bandwidth of storage nodes, fallback rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice_core.messages.bandwidth import NO_CLASS, Flow


@dataclass(frozen=True, slots=True)
class AgentState:
    """The last :class:`PriorityUpdate` of the agent; ``active`` says whether any objective is in force on this node."""

    levels: Mapping[Flow, int] = field(default_factory=dict)
    active: bool = False
    #: The unused fraction, 0 to 1, of each storage node's read bandwidth.
    spares: Mapping[str, float] = field(default_factory=dict)
    #: Method → bytes per second of a flow without a rate while the agent is unreachable; missing: unlimited.
    fallback_rates: Mapping[str, float] = field(default_factory=dict)

    def level(self, flow: Flow) -> int:
        """Return the level of the flow, else of its tenant's flows, else ``bandwidth.NO_CLASS``."""
        priority = self.levels.get(flow)
        if priority is None and flow.container:
            priority = self.levels.get(flow._replace(container=""))
        return NO_CLASS if priority is None else priority
