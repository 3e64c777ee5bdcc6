"""What is missing to keep promises: now, and should all floors be asked for at once.

* *Now* is what the division could not give.  Besides, a flow that goes on to move less lacks that too, when it waits
  for us, or where its bytes lie at least as much is copied between nodes: nothing holds that back without a cap, and
  the disks are the same.
* *At once*: promises to targets by name, to members of groups, and to those of ALL that were ever seen to move.  What
  nodes can carry is known when all of a side are configured.

Promises are made by ten thousands and nearly all of them are idle: these are kept from one second to the next, and
summed up in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.methods.method_allocator import MethodAllocation
from sluice_actors.bandwidth.objectives import Objectives
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import FLOORS, NODE_FLOORS, REPLICATION, Flow, Objective
from sluice_core.messages.bandwidth_report import CachedJson
from sluice_core.messages.policies import NAME

#: A floor that lacks less than this part of it is met.
TOLERANCE: Final = 0.01
#: Seconds after which a flow that moves less than this part of its floor lacks the rest.
_LACKS: Final = 4.0
_LESS: Final = 0.9
_OPEN, _HELD = 0.9, 0.1

#: Policy → parameter → bytes per second.
Shortfall = Mapping[str, Mapping[str, float]]


@dataclass(slots=True)
class IdleFloor:
    """A promise to somebody, as it is while nothing of it moves.

    ``policy`` is the storage policy's index, if known; ``unseen`` is a member of a group of whom nothing moved lately.
    ``row`` is how it was shown last, with what it lacked when ``part`` of all floors was lacking.
    """

    own: Objective
    account: str
    container: str
    policy: int
    floor: float
    unseen: bool = False
    row: CachedJson | None = None
    part: float = 0.0


@dataclass(slots=True)
class SlowFlows:
    """Flows that move less than their floors, and since when."""

    _since: dict[Flow, float] = field(default_factory=dict)

    def step(self, made: MethodAllocation, now: float) -> None:
        """Add to ``made`` what they lack."""
        demands, table = made.demands, made.table
        floors = np.minimum(made.met, demands.per_flow("ceiling"))
        moved, opened = demands.per_flow("mean_moved"), demands.per_flow("mean_open")
        slow = np.flatnonzero((floors > 0) & (moved < _LESS * floors) & (opened >= _OPEN)).tolist()
        before, self._since = self._since, {}
        copied = table.per_node(REPLICATION, STORAGE_NODE, table.stats.mean_moved) if slow else np.empty(0)
        for index in slow:
            one = demands.flows[index]
            lacks = float(floors[index] - moved[index])
            nodes = demands.parts[STORAGE_NODE].nodes_of(index)
            if one.mean_waiting > _HELD * one.mean_open or float(copied[nodes].sum()) >= lacks:
                since = self._since[one.flow] = before.get(one.flow, now)
                if now - since >= _LACKS:
                    made.short[index] = one.floor - moved[index]
                    made.met[index] = moved[index]


@dataclass(slots=True)
class FloorRegistry:
    """All promises by ``method``, whether anything of them moves or not.

    They are looked up once, and again when objectives or groups change, or there are more or fewer object servers; who
    is seen for the first time is added.  So a second costs what is active, however many are idle.
    """

    method: str
    _ones: list[IdleFloor] = field(default_factory=list)
    _made_of: tuple[int, int] = (-1, -1)
    _flows: Sequence[Flow] = ()
    _looked: int = 0
    _of: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _places: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _columns: _Columns | None = None

    def step(self, divided: MethodAllocation, objectives: Objectives, servers: int) -> IdleFloors:
        """Those of which nothing moves now.

        :param servers: object servers there are
        """
        flows = divided.table.flow_index.flows
        if self._made_of != (objectives.changes, servers) or self._flows is not flows:
            self._made_of, self._flows, self._looked = (objectives.changes, servers), flows, 0
            self._begin(objectives, servers)
        if objectives.has_group_floors(self.method):
            for flow in flows[self._looked :]:
                if flow.method == self.method:
                    self._see(flow, objectives, servers)
        self._looked = len(flows)
        if self._columns is None:
            self._columns = _Columns.of(self._ones)
        idle = np.ones(len(self._ones), dtype=bool)
        active = (self._of.get((one.flow.account, one.flow.container), ()) for one in divided.demands.flows)
        idle[list(chain.from_iterable(active))] = False
        return IdleFloors(self._ones, self._columns, idle)

    def _begin(self, objectives: Objectives, servers: int) -> None:
        self._ones, self._of, self._places, self._columns = [], {}, {}, None
        for own in objectives.named_objectives(self.method):
            account, _, container = own.name.partition("/")
            self._put(_idle(own, account, container, objectives.policy_index(own.storage_policy), servers))
        for member in objectives.member_floors(self.method) if objectives.has_group_floors(self.method) else ():
            self._put(_idle(*member, servers, unseen=True))

    def _see(self, flow: Flow, objectives: Objectives, servers: int) -> None:
        own = objectives.for_flow(flow).own
        if own is not None and own.select != NAME:
            self._put(_idle(own, flow.account, flow.container, flow.policy, servers))

    def _put(self, one: IdleFloor) -> None:
        """Add it, or put it in the place of what was known of the same promise to the same."""
        place = self._places.setdefault((one.own.assignment, one.account, one.container), len(self._ones))
        if place == len(self._ones):
            self._ones.append(one)
            self._of.setdefault((one.account, one.container), []).append(place)
        else:
            self._ones[place] = one
        self._columns = None


@dataclass(frozen=True, slots=True)
class _Columns:
    """Promises in arrays: ``policy`` and ``term`` are places in ``policies`` and ``terms``.

    ``policies`` are indexes of storage policies, ``terms`` policies and parameters that promise.
    """

    floor: FloatArray
    unseen: BoolArray
    policy: IntArray
    policies: tuple[int, ...]
    term: IntArray
    terms: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, ones: Sequence[IdleFloor]) -> _Columns:
        policies: dict[int, int] = {}
        terms: dict[tuple[str, str], int] = {}
        policy = [policies.setdefault(one.policy, len(policies)) for one in ones]
        term = [terms.setdefault((one.own.policy, _parameter(one.own)), len(terms)) for one in ones]
        return cls(
            np.array([one.floor for one in ones], dtype=np.float64),
            np.array([one.unseen for one in ones], dtype=bool),
            np.array(policy, dtype=np.intp),
            tuple(policies),
            np.array(term, dtype=np.intp),
            tuple(terms),
        )


@dataclass(frozen=True, slots=True)
class IdleFloors:
    """All promises by one method, and those of them of which nothing moves now; each has its place."""

    _ones: Sequence[IdleFloor]
    _columns: _Columns
    _idle: BoolArray

    def of_same(self, other: IdleFloors | None) -> bool:
        """Whether these are the same promises, whatever of them is idle."""
        return other is not None and other._columns is self._columns

    def places(self, unseen: bool) -> list[int]:
        """All, idle or not, of who was seen or of who was not."""
        found: list[int] = np.flatnonzero(self._columns.unseen == unseen).tolist()
        return found

    def one(self, place: int) -> IdleFloor:
        """That at a place."""
        return self._ones[place]

    def count(self, places: IntArray | None = None) -> int:
        """How many are idle, of those at ``places`` if given."""
        return int(np.count_nonzero(self._idle if places is None else self._idle[places]))

    def floors(self) -> dict[int, float]:
        """Storage policy → the sum of floors."""
        return dict(zip(self._columns.policies, self._sums(self._columns.policy), strict=True))

    def terms(self) -> dict[tuple[str, str], float]:
        """Policy and parameter → the sum of floors, where there are any."""
        sums = zip(self._columns.terms, self._sums(self._columns.term), strict=True)
        return {term: floor for term, floor in sums if floor > 0}

    def _sums(self, index: IntArray) -> list[float]:
        found: list[float] = np.bincount(index, self._columns.floor * self._idle).tolist()
        return found


def overcommitment(
    divided: MethodAllocation, idle: IdleFloors, carried: Mapping[str, float], copies: Callable[[int], float]
) -> float:
    """The part of all floors that the cluster lacks, should all of them be asked for at once.

    :param carried: side → what all its nodes carry, infinite when that is not known
    :param copies: bytes stored for each that is promised, by storage policy
    """
    floors = idle.floors()
    for one in divided.demands.flows:
        floors[one.flow.policy] = floors.get(one.flow.policy, 0.0) + max(one.floor, one.promised)
    wanted = {
        PROXY: sum(floors.values()),
        STORAGE_NODE: sum(floor * copies(policy) for policy, floor in floors.items()),
    }
    return max([0.0, *(1.0 - carried[side] / total for side, total in wanted.items() if total > 0)])


def floor_shortfall(
    made: Mapping[str, MethodAllocation], idle: Mapping[str, IdleFloors], lacking: Mapping[str, float]
) -> Shortfall:
    """What is missing, now or if all floors were asked for at once, whichever is more."""
    found: dict[str, dict[str, float]] = {}
    for method, divided in made.items():
        part = lacking.get(method, 0.0)
        terms = idle[method].terms() if part > TOLERANCE else {}
        later = {term: floor * part for term, floor in terms.items()}
        now: dict[tuple[str, str], float] = {}
        for one, short in zip(divided.demands.flows, divided.short.tolist(), strict=True):
            if one.objectives.own is not None:
                if part > TOLERANCE:
                    _add(later, one.objectives.own, max(one.floor, one.promised) * part)
                if short > TOLERANCE * one.floor:
                    _add(now, one.objectives.own, short)
        for policy, parameter in {**later, **now}:
            key = policy, parameter
            found.setdefault(policy, {})[parameter] = max(later.get(key, 0.0), now.get(key, 0.0))
    return {policy: found[policy] for policy in sorted(found)}


def _idle(own: Objective, account: str, container: str, policy: int, servers: int, unseen: bool = False) -> IdleFloor:
    return IdleFloor(own, account, container, policy, max(own.floor, own.node_floor * servers), unseen)


def _add(sums: dict[tuple[str, str], float], own: Objective, missing: float) -> None:
    if missing > 0:
        key = own.policy, _parameter(own)
        sums[key] = sums.get(key, 0.0) + missing


def _parameter(own: Objective) -> str:
    if own.node_floor > own.floor:
        return NODE_FLOORS[own.method]
    return FLOORS[own.method]
