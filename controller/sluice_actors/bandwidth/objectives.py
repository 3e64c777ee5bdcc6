"""Finds the objectives that hold for a flow.

For each method and storage policy the narrowest scope wins: one container before a group of containers before ALL
CONTAINERS before one tenant, and so on.  ``sluice_core.resolve`` says what newer SETs and DELETEs leave at each level;
of the objectives left at one scope, one for the storage policy comes before one for all of them.  After a DELETE for
a container its bytes count as its tenant's again.  A tenant's ceiling also bounds the sum over its containers.

Thousands of idle tenants with objectives cost only memory: only active flows are looked up, and results are kept
until something changes, which :attr:`Objectives.changes` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from sluice_actors.bandwidth.objective_index import ObjectiveIndex, has_objectives, in_force, precedence
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import ANY_POLICY, GET, REPLICATION, Flow, Objective
from sluice_core.messages.policies import CONTAINER, GROUP, TENANT, Assignment, Change


@dataclass(frozen=True, slots=True)
class FlowObjectives:
    """The objectives of a flow: its own, and its tenant's if that has a ceiling, which bounds all flows of the tenant.

    Both are the same for a flow of the tenant itself.
    """

    own: Objective | None = None
    bound: Objective | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """Ids of the policies that hold for the flow."""
        return tuple(dict.fromkeys(each.policy for each in (self.own, self.bound) if each is not None))

    @property
    def is_empty(self) -> bool:
        """True when no policy holds for the flow."""
        return self.own is None and self.bound is None

    @property
    def has_ceiling(self) -> bool:
        """True when the flow or its tenant has a ceiling."""
        return bool((self.own is not None and self.own.ceiling) or self.bound is not None)


class MemberFloor(NamedTuple):
    """A floor of one member of a group; the flow has the storage policy's index, if known."""

    own: Objective
    flow: Flow


#: Members of groups whose floors of one method are looked up, whether any of their bytes ever moved or not.
MAX_MEMBERS: Final = 20_000
_NONE: Final = FlowObjectives()


class Objectives:
    """The objectives in force, kept up to date change by change.

    :param groups: the members of groups
    """

    def __init__(self, groups: GroupIndex) -> None:
        #: Counts the changes after which the objectives of any flow may differ.
        self.changes = 0
        self._groups = groups
        self._by_id: dict[str, Assignment] = {}
        self._policies: dict[str, str] = {}
        self._reindex()

    def replace(self, assignments: Iterable[Assignment]) -> None:
        """Replace the objectives in force by those among ``assignments``."""
        self._by_id = {each.id: each for each in assignments if has_objectives(each)}
        self._reindex()

    def apply(self, change: Change) -> bool:
        """Apply ``change``, which the groups contain already; True when it has objectives."""
        dropped = [name for name in change.drops if self._by_id.pop(name, None) is not None]
        put = {each.id: each for each in change.puts if has_objectives(each)}
        self._by_id.update(put)
        if dropped or put:
            self._reindex()
        elif change.entries or change.entry_drops:
            self._forget()
        return bool(dropped or put)

    def set_policy_names(self, policies: Mapping[str, str]) -> None:
        """Set the names of the storage policies: index as text → name."""
        if policies != self._policies:
            self._policies = dict(policies)
            self._forget()

    def _reindex(self) -> None:
        self._forget()
        #: The objectives in force, by their scope.
        self.index = ObjectiveIndex(self._by_id.values())

    def _forget(self) -> None:
        """Drop the results of all look-ups."""
        self.changes += 1
        self._known: dict[Flow, FlowObjectives] = {}
        self._members: dict[str, Sequence[MemberFloor]] = {}

    # -- by method

    def has_floors(self, method: str) -> bool:
        """True when any floor of this method is in force, whether its target is active or not."""
        return method in self.index.with_floors

    def has_ceilings(self, method: str) -> bool:
        """True when any ceiling of this method is in force."""
        return method in self.index.with_ceilings

    def governs(self, method: str) -> bool:
        """True when Sluice may throttle any flow of this method."""
        return self.has_floors(method) or self.has_ceilings(method)

    def side(self, method: str) -> str:
        """The side where Sluice throttles this method.

        Uploads are always throttled at the proxies: bytes that an object server holds back fill buffers until the proxy
        gives up.
        """
        if method == REPLICATION:
            return STORAGE_NODE
        return STORAGE_NODE if method == GET and self.index.sides.get(method) == {STORAGE_NODE} else PROXY

    @property
    def replication(self) -> Objective | None:
        """The cap on replication; None without one."""
        return min(self.index.replication, key=precedence, default=None)

    def policy_index(self, storage_policy: str) -> int:
        """The index of a storage policy by its index or name in a policy.

        :returns: :data:`~sluice_core.messages.bandwidth.ANY_POLICY` if unknown
        """
        if not storage_policy:
            return ANY_POLICY
        if storage_policy.isdigit():
            return int(storage_policy)
        named = {name.lower(): index for index, name in self._policies.items()}
        return int(named.get(storage_policy.lower(), ANY_POLICY))

    # -- by flow

    def for_flow(self, flow: Flow) -> FlowObjectives:
        """The objectives of ``flow``; the time is bounded, however many objectives there are."""
        known = self._known.get(flow)
        if known is None:
            known = self._known[flow] = self._find(flow)
        return known

    def _find(self, flow: Flow) -> FlowObjectives:
        tenant = self._first(flow, TENANT, flow.account)
        container = self._first(flow, CONTAINER, flow.path) if flow.container else None
        own = tenant if container is None else container
        bound = tenant if tenant is not None and tenant.ceiling else None
        return FlowObjectives(own, bound) if own is not None or bound is not None else _NONE

    def _first(self, flow: Flow, level: str, path: str) -> Objective | None:
        groups = (
            each for each in self.index.of_groups.get(level, ()) if self._groups.contains(level, each.target.name, path)
        )
        candidates = [*self.index.by_name.get((level, path), ()), *groups, *self.index.of_all.get(level, ())]
        return self._narrowest(candidates, flow.method, flow.policy)

    def _narrowest(self, candidates: list[Assignment], method: str, policy: int) -> Objective | None:
        """The objective that wins among candidates of one level."""
        fitting = (
            objective
            for assignment in in_force(candidates)
            for objective in self.index.objectives[assignment.id]
            if objective.method == method and self._is_policy(objective.storage_policy, policy)
        )
        return min(fitting, key=precedence, default=None)

    def _is_policy(self, written: str, index: int) -> bool:
        if not written or written == str(index):
            return True
        return self._policies.get(str(index), "").lower() == written.lower()

    # -- by member

    def member_floors(self, method: str) -> Sequence[MemberFloor]:
        """Floors of this method that members of groups have, of up to :data:`MAX_MEMBERS` members."""
        known = self._members.get(method)
        if known is None:
            known = self._members[method] = list(self._find_member_floors(method))
        return known

    def _find_member_floors(self, method: str) -> Iterator[MemberFloor]:
        of_groups = self.index.of_groups
        groups = {
            (assignment.target.level, assignment.target.name, self.policy_index(objective.storage_policy))
            for assignment in chain.from_iterable(of_groups.values())
            for objective in self.index.objectives[assignment.id]
            if objective.method == method and (objective.floor or objective.node_floor)
        }
        paths = (
            (level, path, policy)
            for level, name, policy in sorted(groups)
            for path in self._groups.members(level, name)
        )
        some = list(islice(paths, MAX_MEMBERS))
        groups_of = {level: self._groups_with(level, {path for _, path, _ in some}) for level in of_groups}
        # The objective depends only on the assignments of a path, which are the same for nearly all paths.
        known: dict[tuple[str | int, ...], Objective | None] = {}
        members_seen: set[tuple[str, str]] = set()
        for level, path, policy in some:
            candidates = [*self.index.by_name.get((level, path), ()), *groups_of[level].get(path, ())]
            key = (level, policy, *(each.id for each in candidates))
            if key not in known:
                known[key] = self._narrowest([*candidates, *self.index.of_all.get(level, ())], method, policy)
            own = known[key]
            if own is None or own.select != GROUP or not (own.floor or own.node_floor):
                continue
            if (own.assignment, path) not in members_seen:
                members_seen.add((own.assignment, path))
                account, _, container = path.partition("/")
                yield MemberFloor(own, Flow(account, method, policy, container))

    def _groups_with(self, level: str, paths: Set[str]) -> dict[str, list[Assignment]]:
        """Path → the assignments to groups that contain it, for each of ``paths``."""
        by_path: dict[str, list[Assignment]] = {}
        for assignment in self.index.of_groups[level]:
            for path in self._groups.among(level, assignment.target.name, paths):
                by_path.setdefault(path, []).append(assignment)
        return by_path
