"""Allocates a method by the rates of a global controller, in place of floors and ceilings.

An answer of a controller is complete: a flow-node without a rate is not held back.  An answer holds for some seconds
after it arrived.  So a controller that is stopped, or whose host dies, leaves nothing behind: Sluice's own allocation
goes on then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_actors.bandwidth.methods.allocation import MIN_RATE, MethodAllocation, add_priorities, share_columns
from sluice_actors.bandwidth.methods.demand import MethodDemand
from sluice_core.messages.bandwidth import ControllerRates


@dataclass(slots=True)
class ControllerRateTable:
    """The newest answer of each controller."""

    #: Controller → its answer, and until when it holds, in seconds of our monotonic clock.
    _answers: dict[str, tuple[ControllerRates, float]] = field(default_factory=dict)

    def feed(self, answer: ControllerRates, now: float) -> None:
        """Add an answer that arrived at ``now``; one that is older than the one before is ignored."""
        known = self._answers.get(answer.controller)
        if known is None or (known[0].term, known[0].at) < (answer.term, answer.at):
            self._answers[answer.controller] = (answer, now + answer.valid)

    def current(self, method: str, now: float) -> ControllerRates | None:
        """The answer that holds for ``method``; of several controllers that of the first name."""
        self._answers = {name: known for name, known in self._answers.items() if known[1] > now}
        found = (answer for _, (answer, _) in sorted(self._answers.items()) if method in answer.methods)
        return next(found, None)


def allocate_rates(table: LoadTable, demands: MethodDemand, answer: ControllerRates) -> MethodAllocation:
    """Hold back the flows for which ``answer`` has rates; the other side gets priorities alone."""
    allocation = MethodAllocation(table, demands, governed=True)
    rates = {(row.node, row.flow): max(row.rate, MIN_RATE) for row in answer.rows}
    here = demands.throttled
    pairs = zip(here.node.tolist(), here.flow.tolist(), strict=True)
    found = (rates.get((table.nodes[node].name, demands.flows[flow].flow), math.inf) for node, flow in pairs)
    rate = np.fromiter(found, dtype=np.float64, count=len(here.node))
    limited = np.isfinite(rate)
    allocation.add(share_columns(demands, here, limited, rate, np.zeros_like(rate), rate))
    add_priorities(allocation)
    # a flow with a part that is not held back may move anything
    allocation.share = here.sums(rate) if len(rate) else allocation.share
    wanted = np.minimum(demands.per_flow("floor"), demands.per_flow("demand"))
    allocation.short = np.maximum(wanted - allocation.share, 0.0)
    allocation.met = demands.per_flow("floor") - allocation.short
    return allocation
