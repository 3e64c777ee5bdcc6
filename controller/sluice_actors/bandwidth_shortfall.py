"""What is missing to keep promises: now, and should all floors be asked for at once.

* *Now* is what the division could not give.  Besides, a flow that goes on to move less lacks that too, when it waits
  for us, or where its bytes lie at least as much is copied between nodes: nothing holds that back without a cap, and
  the disks are the same.
* *At once*: promises to targets by name, to members of groups, and to those of ALL that were ever seen to move.  What
  nodes can carry is known when all of a side are configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from sluice_actors.bandwidth_dividing import Divided
from sluice_actors.bandwidth_objectives import Objectives
from sluice_core.bandwidth import FLOORS, NODE_FLOORS, REPLICATION, Flow, Objective
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages import NAME

#: A floor that lacks less than this part of it is met.
SLIGHT: Final = 0.01
#: Seconds after which a flow that moves less than this part of its floor lacks the rest.
_LACKS: Final = 4.0
_LESS: Final = 0.9
_OPEN, _HELD = 0.9, 0.1

#: Policy → parameter → bytes per second.
Missing = Mapping[str, Mapping[str, float]]


class Idle(NamedTuple):
    """A promise to somebody of whom nothing moves now; ``policy`` is the storage policy's index, if known.

    ``unseen`` is a member of a group of whom nothing moved lately.
    """

    own: Objective
    account: str
    container: str
    policy: int
    floor: float
    unseen: bool = False


@dataclass(slots=True)
class Slow:
    """Flows that move less than their floors, and since when."""

    _since: dict[Flow, float] = field(default_factory=dict)

    def step(self, made: Divided, now: float) -> None:
        """Add to ``made`` what they lack."""
        demands, table = made.demands, made.table
        floors = np.minimum(made.met, demands.per_flow("ceiling"))
        moved, opened = demands.per_flow("bytes"), demands.per_flow("transfers")
        slow = np.flatnonzero((floors > 0) & (moved < _LESS * floors) & (opened >= _OPEN)).tolist()
        before, self._since = self._since, {}
        copied = table.per_node(REPLICATION, STORAGE_NODE, table.traces.bytes) if slow else np.empty(0)
        for index in slow:
            one = demands.flows[index]
            lacks = float(floors[index] - moved[index])
            nodes = demands.parts[STORAGE_NODE].nodes_of(index)
            if one.held > _HELD * one.transfers or float(copied[nodes].sum()) >= lacks:
                since = self._since[one.flow] = before.get(one.flow, now)
                if now - since >= _LACKS:
                    made.short[index] = one.floor - moved[index]
                    made.met[index] = moved[index]


def idle_ones(method: str, divided: Divided, objectives: Objectives, servers: int) -> list[Idle]:
    """Promises by ``method`` of which nothing moves.

    :param servers: object servers there are
    """
    flows = divided.demands.flows
    there = {(one.flow.account, one.flow.container) for one in flows}

    def of(own: Objective, account: str, container: str, policy: int, unseen: bool = False) -> Idle:
        return Idle(own, account, container, policy, max(own.floor, own.node_floor * servers), unseen)

    found = [
        of(own, account, container, objectives.index_of(own.storage_policy))
        for own in objectives.named(method)
        for account, _, container in (own.name.partition("/"),)
        if (account, container) not in there
    ]
    if objectives.wide(method):
        seen: dict[tuple[str, str, str], Idle] = {}
        for flow in divided.table.names.flows:
            if flow.method == method and (flow.account, flow.container) not in there:
                promised = objectives.promise(flow).own
                if promised is not None and promised.select != NAME:
                    key = (promised.assignment, flow.account, flow.container)
                    seen[key] = of(promised, flow.account, flow.container, flow.policy)
        found += seen.values()
        found += [
            of(*one, unseen=True)
            for one in objectives.members(method)
            if (one.account, one.container) not in there
            and (one.own.assignment, one.account, one.container) not in seen
        ]
    return found


def lacking_of(
    divided: Divided, idle: Iterable[Idle], carried: Mapping[str, float], copies: Callable[[int], float]
) -> float:
    """The part of all floors that the cluster lacks, should all of them be asked for at once.

    :param carried: side → what all its nodes carry, infinite when that is not known
    :param copies: bytes stored for each that is promised, by storage policy
    """
    each = [(one.floor, one.policy) for one in idle]
    each += [(max(one.floor, one.promised), one.flow.policy) for one in divided.demands.flows]
    stored = {policy: copies(policy) for policy in {policy for _, policy in each}}
    wanted = {
        PROXY: sum(floor for floor, _ in each),
        STORAGE_NODE: sum(floor * stored[policy] for floor, policy in each),
    }
    return max([0.0, *(1.0 - carried[side] / total for side, total in wanted.items() if total > 0)])


def missing_of(made: Mapping[str, Divided], idle: Mapping[str, list[Idle]], lacking: Mapping[str, float]) -> Missing:
    """What is missing, now or if all floors were asked for at once, whichever is more."""
    found: dict[str, dict[str, float]] = {}
    for method, divided in made.items():
        part = lacking.get(method, 0.0)
        later: dict[tuple[str, str], float] = {}
        now: dict[tuple[str, str], float] = {}
        for gone in idle[method] if part > SLIGHT else ():
            _add(later, gone.own, gone.floor * part)
        for one, short in zip(divided.demands.flows, divided.short.tolist(), strict=True):
            if one.promise.own is not None:
                if part > SLIGHT:
                    _add(later, one.promise.own, max(one.floor, one.promised) * part)
                if short > SLIGHT * one.floor:
                    _add(now, one.promise.own, short)
        for policy, parameter in {**later, **now}:
            key = policy, parameter
            found.setdefault(policy, {})[parameter] = max(later.get(key, 0.0), now.get(key, 0.0))
    return {policy: found[policy] for policy in sorted(found)}


def _add(sums: dict[tuple[str, str], float], own: Objective, missing: float) -> None:
    if missing > 0:
        key = own.policy, _parameter(own)
        sums[key] = sums.get(key, 0.0) + missing


def _parameter(own: Objective) -> str:
    if own.node_floor > own.floor:
        return NODE_FLOORS[own.method]
    return FLOORS[own.method]
