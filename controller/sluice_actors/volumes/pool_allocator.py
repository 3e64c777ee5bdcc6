"""Divides the capacity of a pool among its volumes, by the allocator that divides the cluster's bandwidth.

Each pool has an :class:`~sluice_actors.bandwidth.allocator.Allocator` of its own.  In its terms a machine with a
konnector is a proxy, a volume is a container of its project, and the pool is the one storage node, whose capacity is
the calibrated one of the pool.  So floors of volumes are met, and the rest is shared, as among tenants: reads are
``GET``, writes are ``PUT``.

No I/O and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_actors.bandwidth.allocator import AllocationRound, Allocator
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, Flow, Load, NodeLoad
from sluice_core.messages.policies import CONTAINER, VOLUME, Assignment
from sluice_volumes.messages import PoolCalibration

#: The name of the pool among the nodes; no real node has it.
_POOL: Final = "\0pool"
#: Level for the allocator → level of the groups.
_LEVELS: Final = {CONTAINER: VOLUME}
#: The capacity of a machine: it limits nothing, and is not estimated.
_MACHINE: Final = {PROXY: dict.fromkeys((GET, PUT), 1e15)}


@dataclass(frozen=True, slots=True)
class VolumeLoad:
    """The rate of a volume in the last second by one method, on one machine: ``moved`` in bytes per second.

    A volume that moves its allowed rate demands more: throttles are exact, so no report of waiting requests is needed.
    """

    account: str
    volume: str
    method: str
    moved: float


class _VolumeGroups(GroupIndex):
    """Groups of volumes, presented to the allocator as groups of containers."""

    def __init__(self, groups: GroupIndex) -> None:
        super().__init__()
        self._groups = groups

    def contains(self, level: str, group: str, path: str) -> bool:
        return self._groups.contains(_LEVELS.get(level, level), group, path)

    def members(self, level: str, group: str) -> tuple[str, ...]:
        return self._groups.members(_LEVELS.get(level, level), group)

    def among(self, level: str, group: str, paths: Set[str]) -> Set[str]:
        return self._groups.among(_LEVELS.get(level, level), group, paths)


@dataclass(eq=False)
class PoolAllocator:
    """:param groups: the members of groups of volumes"""

    groups: GroupIndex
    host: str = ""
    _number: int = 0
    _allocator: Allocator = field(init=False)

    def __post_init__(self) -> None:
        self._allocator = Allocator(_VolumeGroups(self.groups), self.host, amplification=1.0)

    def set_assignments(self, assignments: Iterable[Assignment]) -> None:
        """Put exactly the floors and ceilings of volumes in ``assignments`` into force."""
        self._allocator.objectives.replace([_as_container(one) for one in assignments if is_volume_bandwidth(one)])

    def has_floor(self, load: VolumeLoad) -> bool:
        """Whether a floor is in force for the volume and the method of ``load``."""
        flow = Flow(load.account, load.method, container=load.volume)
        own = self._allocator.objectives.for_flow(flow).own
        return own is not None and own.floor > 0

    def allocate(
        self,
        capacity: PoolCalibration,
        loads: Mapping[str, Iterable[VolumeLoad]],
        now: float,
        at: float,
        term: int,
        number: int,
    ) -> AllocationRound:
        """Make one round: node → the shares of its volumes.

        :param loads: machine → the loads of its volumes in this pool, of all machines with any
        :param now: seconds on a monotonic clock
        :param at: Unix time, for the messages
        """
        self._number += 1
        sums: dict[tuple[str, str, str], float] = {}
        for node, several in loads.items():
            rows = []
            for volume_load in several:
                rows.append(
                    Load(
                        PROXY,
                        volume_load.account,
                        volume_load.volume,
                        volume_load.method,
                        0,
                        "",
                        volume_load.moved,
                        1.0,
                        0.0,
                    )
                )
                key = (volume_load.account, volume_load.volume, volume_load.method)
                sums[key] = sums.get(key, 0.0) + volume_load.moved
            load = NodeLoad(node, at, 1.0, self._number, capacity=_MACHINE, sides=(PROXY,), rows=tuple(rows))
            self._allocator.feed(load, now)
        stored = tuple(
            Load(STORAGE_NODE, account, volume, method, 0, "", moved, 1.0, 0.0)
            for (account, volume, method), moved in sums.items()
        )
        carries = {STORAGE_NODE: {GET: capacity.read_bw, PUT: capacity.write_bw}}
        pool = NodeLoad(_POOL, at, 1.0, self._number, capacity=carries, sides=(STORAGE_NODE,), rows=stored)
        self._allocator.feed(pool, now)
        made = self._allocator.allocate(now, at, term, number)
        messages = {node: body for node, body in made.messages.items() if node != _POOL}
        return replace(made, messages=messages)


def is_volume_bandwidth(assignment: Assignment) -> bool:
    """True if the assignment sets a floor or ceiling for volumes."""
    return assignment.kind == BANDWIDTH and assignment.target.level == VOLUME


def _as_container(assignment: Assignment) -> Assignment:
    """The assignment with the container that stands for the volume in the allocator."""
    return replace(assignment, target=replace(assignment.target, level=CONTAINER), place=PROXY)
