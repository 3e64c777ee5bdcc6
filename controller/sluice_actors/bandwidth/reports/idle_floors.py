"""All floors of objectives, which of them are idle (no byte of their flow moves), and how they are reported.

There are tens of thousands of floors and nearly all of them are idle.  So they are kept from one second to the next
and added up in arrays.

A row of the report is made anew when objectives change, or the missing part of its floor, not when a flow begins or
ends.  So idle floors cause no writes meanwhile, however many there are (``IdleFlowReport`` in
``sluice_core.messages.bandwidth_report``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import BoolArray, FloatArray, IntArray
from sluice_actors.bandwidth.methods.allocation import MethodAllocation
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports.report import TOLERANCE, asked_rates
from sluice_core.messages.bandwidth import FLOORS, NODE_FLOORS, Flow, Objective
from sluice_core.messages.bandwidth_report import CachedJson, IdleFlowReport
from sluice_core.messages.policies import NAME


@dataclass(slots=True)
class IdleFloor:
    """A floor of one tenant or container, as reported while no byte of its flow moves."""

    own: Objective
    flow: Flow  #: with the index of the storage policy, if known
    floor: float  #: bytes per second
    unseen: bool = False  #: a member of a group of which no byte moved lately
    row: CachedJson | None = None  #: its last row
    part: float = 0.0  #: the missing part of all floors in that row


@dataclass(slots=True)
class FloorRegistry:
    """All floors of ``method``, idle or not.

    They are looked up once, and again when objectives, groups or the number of object servers change; a flow that
    is new is added.  So the cost of a second depends on the number of active flows, however many are idle.
    """

    method: str
    _floors: list[IdleFloor] = field(default_factory=list)
    _revision: tuple[int, int] = (-1, -1)
    _flows: Sequence[Flow] = ()
    _seen: int = 0
    _of: dict[str, list[int]] = field(default_factory=dict)
    _positions: dict[tuple[str, str], int] = field(default_factory=dict)
    _columns: _Columns | None = None

    def update(self, allocation: MethodAllocation, objectives: Objectives, servers: int) -> IdleFloors:
        """The floors, and which of them are idle in this round.

        :param servers: number of object servers
        """
        flows = allocation.table.flow_index.flows
        if self._revision != (objectives.changes, servers) or self._flows is not flows:
            self._revision, self._flows, self._seen = (objectives.changes, servers), flows, 0
            self._begin(objectives, servers)
        if self.method in objectives.index.with_group_floors:
            for flow in flows[self._seen :]:
                if flow.method == self.method:
                    self._see(flow, objectives, servers)
        self._seen = len(flows)
        if self._columns is None:
            self._columns = _Columns.from_floors(self._floors)
        idle = np.ones(len(self._floors), dtype=bool)
        active = (self._of.get(demand.flow.path, ()) for demand in allocation.demands.flows)
        idle[list(chain.from_iterable(active))] = False
        return IdleFloors(self._floors, self._columns, idle)

    def _begin(self, objectives: Objectives, servers: int) -> None:
        self._floors, self._of, self._positions, self._columns = [], {}, {}, None
        for own in objectives.index.named.get(self.method, ()):
            account, _, container = own.name.partition("/")
            flow = Flow(account, self.method, objectives.policy_index(own.storage_policy), container)
            self._put(_idle_floor(own, flow, servers))
        in_groups = self.method in objectives.index.with_group_floors
        for member in objectives.member_floors(self.method) if in_groups else ():
            self._put(_idle_floor(*member, servers, unseen=True))

    def _see(self, flow: Flow, objectives: Objectives, servers: int) -> None:
        own = objectives.for_flow(flow).own
        if own is not None and own.select != NAME:
            self._put(_idle_floor(own, flow, servers))

    def _put(self, floor: IdleFloor) -> None:
        """Add ``floor``, or replace the one of the same objective for the same target."""
        key = floor.own.assignment, floor.flow.path
        position = self._positions.setdefault(key, len(self._floors))
        if position == len(self._floors):
            self._floors.append(floor)
            self._of.setdefault(floor.flow.path, []).append(position)
        else:
            self._floors[position] = floor
        self._columns = None


@dataclass(frozen=True, slots=True)
class _Columns:
    """Floors in arrays."""

    floor: FloatArray  #: (floors,) bytes per second
    unseen: BoolArray  #: (floors,)
    policy: IntArray  #: (floors,) positions in ``policies``
    policies: tuple[int, ...]  #: indexes of storage policies
    term: IntArray  #: (floors,) positions in ``terms``
    terms: tuple[tuple[str, str], ...]  #: policies and their parameters

    @classmethod
    def from_floors(cls, floors: Sequence[IdleFloor]) -> _Columns:
        policies: dict[int, int] = {}
        terms: dict[tuple[str, str], int] = {}
        policy = [policies.setdefault(each.flow.policy, len(policies)) for each in floors]
        term = [terms.setdefault((each.own.policy, parameter_of(each.own)), len(terms)) for each in floors]
        return cls(
            np.array([each.floor for each in floors], dtype=np.float64),
            np.array([each.unseen for each in floors], dtype=bool),
            np.array(policy, dtype=np.intp),
            tuple(policies),
            np.array(term, dtype=np.intp),
            tuple(terms),
        )


@dataclass(frozen=True, slots=True)
class IdleFloors:
    """All floors of one method, each at its position, and which of them are idle."""

    _floors: Sequence[IdleFloor]
    _columns: _Columns
    _idle: BoolArray

    def has_same_floors(self, other: IdleFloors | None) -> bool:
        """True when both have the same floors, whichever of them are idle."""
        return other is not None and other._columns is self._columns

    def positions(self, unseen: bool) -> list[int]:
        """Positions of all floors, idle or not, that are unseen or not."""
        found: list[int] = np.flatnonzero(self._columns.unseen == unseen).tolist()
        return found

    def __getitem__(self, position: int) -> IdleFloor:
        return self._floors[position]

    def count(self, positions: IntArray | None = None) -> int:
        """The number of idle floors, of those at ``positions`` if given."""
        return int(np.count_nonzero(self._idle if positions is None else self._idle[positions]))

    def floors(self) -> dict[int, float]:
        """Storage policy → sum of the idle floors."""
        return dict(zip(self._columns.policies, self._sums(self._columns.policy), strict=True))

    def terms(self) -> dict[tuple[str, str], float]:
        """Policy and parameter → sum of the idle floors, where it is above 0."""
        sums = zip(self._columns.terms, self._sums(self._columns.term), strict=True)
        return {term: floor for term, floor in sums if floor > 0}

    def _sums(self, index: IntArray) -> list[float]:
        found: list[float] = np.bincount(index, self._columns.floor * self._idle).tolist()
        return found


def parameter_of(own: Objective) -> str:
    """The parameter of a policy that ``own`` comes from."""
    return NODE_FLOORS[own.method] if own.node_floor > own.floor else FLOORS[own.method]


def _idle_floor(own: Objective, flow: Flow, servers: int, unseen: bool = False) -> IdleFloor:
    return IdleFloor(own, flow, max(own.floor, own.node_floor * servers), unseen)


#: The missing part of an idle floor is reported with this precision, as a part of the floor.
_PRECISION: Final = 0.001


@dataclass(slots=True)
class IdleFloorRows:
    """The rows of the last round.

    Floors of flows that were seen come before members of groups of which no byte ever moved.  Methods take turns, so
    that each method has rows where there is room for a few.
    """

    _report: IdleFlowReport = field(default_factory=IdleFlowReport)
    _idle: Mapping[str, IdleFloors] = field(default_factory=dict)
    _parts: Mapping[str, float] = field(default_factory=dict)
    _positions: Mapping[str, IntArray] = field(default_factory=dict)

    def update(self, idle: Mapping[str, IdleFloors], lacking: Mapping[str, float], most: int) -> IdleFlowReport:
        """The rows of at most ``most`` floors, active or not; the same object while nothing changes.

        :param lacking: method → the part of all its floors that the cluster lacks
        """
        parts = {method: self._part(method, lacking.get(method, 0.0)) for method in idle}
        same = all(floors.has_same_floors(self._idle.get(method)) for method, floors in idle.items())
        if not same or parts != self._parts:
            chosen = _chosen(idle, most)
            self._report = IdleFlowReport(tuple(_row(idle[method][at], parts[method]) for method, at in chosen))
            self._positions = {
                method: np.array([at for other, at in chosen if other == method], dtype=np.intp) for method in idle
            }
        self._idle, self._parts = idle, parts
        return self._report

    def count(self, idle: Mapping[str, IdleFloors]) -> int:
        """The number of rows that are of idle floors."""
        return sum(idle[method].count(positions) for method, positions in self._positions.items())

    def _part(self, method: str, part: float) -> float:
        part = part if part > TOLERANCE else 0.0
        before = self._parts.get(method, part)
        return before if abs(part - before) <= _PRECISION else part


def _chosen(idle: Mapping[str, IdleFloors], most: int) -> list[tuple[str, int]]:
    """Methods and positions of the floors that are reported."""
    chosen = []
    for unseen in (False, True):
        lines = [[(method, at) for at in floors.positions(unseen)] for method, floors in idle.items()]
        chosen += [pair for turn in zip_longest(*lines) for pair in turn if pair is not None]
    return chosen[:most]


def _row(floor: IdleFloor, part: float) -> CachedJson:
    """The last row, unless the missing part has changed."""
    if floor.row is None or floor.part != part:
        floor.row, floor.part = _new_row(floor, part), part
    return floor.row


def _new_row(floor: IdleFloor, part: float) -> CachedJson:
    short = floor.floor * part
    return CachedJson(
        **floor.flow._asdict(),
        floor=floor.floor,
        ceiling=floor.own.ceiling,
        share=0.0,
        measured=0.0,
        waiting=0.0,
        active=False,
        met=floor.floor - short,
        short=short,
        policies=[floor.own.policy],
        **asked_rates(floor.own),
    )
