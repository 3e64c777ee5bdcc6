"""Which objective holds for a flow.

For each method and storage policy the narrowest scope wins: one container before a group of containers before ALL
CONTAINERS before one tenant, and so on.  What is left at each level after newer SETs and DELETEs is said by
``sluice_core.resolve``; of that, at one scope, what names the storage policy comes before what speaks of all.  After a
DELETE for a container its bytes are its tenant's again.  A tenant's ceiling bounds the sum over its containers too.

Thousands of idle tenants with objectives cost memory alone: only flows that move are looked up, and answers are kept
until something changes, of which :attr:`Objectives.changes` tells who keeps more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from sluice_actors.policies.group_index import GroupIndex
from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.describe import REPLICATION as REPLICATION_KIND
from sluice_core.messages.bandwidth import ANY_POLICY, GET, MAX_REPLICATION, REPLICATION, Flow, Objective, objectives
from sluice_core.messages.policies import ALL, CLUSTER, CONTAINER, GROUP, NAME, TENANT, Assignment, Change
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FlowObjectives:
    """What holds for a flow: its own objective, and its tenant's if that has a ceiling, which bounds it with others.

    Both are the same one for a flow of the tenant itself.
    """

    own: Objective | None = None
    bound: Objective | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """Ids of the policies that speak of the flow."""
        return tuple(dict.fromkeys(one.policy for one in (self.own, self.bound) if one is not None))

    @property
    def is_empty(self) -> bool:
        """True when no policy speaks of the flow."""
        return self.own is None and self.bound is None

    @property
    def has_ceiling(self) -> bool:
        """True when there is any ceiling."""
        return bool((self.own is not None and self.own.ceiling) or self.bound is not None)


class MemberFloor(NamedTuple):
    """A floor of one member of a group; ``policy`` is the storage policy's index, if known."""

    own: Objective
    account: str
    container: str
    policy: int


#: Members of groups that are looked up for the floors of one method, whether anything of them ever moved or not.
MAX_MEMBERS: Final = 20_000
_NOTHING: Final = FlowObjectives()
#: Objectives do not ask about requests.
_NO_FACTS: Final = Facts("")


class Objectives:
    """The objectives in force, followed change by change.

    What cannot be read is logged and left out; ``groups`` knows who belongs to which.
    """

    def __init__(self, groups: GroupIndex) -> None:
        #: How often what holds for anybody may have changed.
        self.changes = 0
        self._groups = groups
        self._by_id: dict[str, Assignment] = {}
        self._policies: dict[str, str] = {}
        self._index()

    def replace(self, assignments: Iterable[Assignment]) -> None:
        """Exactly what is among ``assignments`` is in force."""
        self._by_id = {one.id: one for one in assignments if _ours(one)}
        self._index()

    def apply(self, change: Change) -> bool:
        """What ``change`` says of objectives and groups, which know of it already; True when that is anything."""
        gone = [name for name in change.drops if self._by_id.pop(name, None) is not None]
        found = [one for one in change.puts if _ours(one)]
        self._by_id.update({one.id: one for one in found})
        if gone or found:
            self._index()
        elif change.entries or change.entry_drops:
            self._forget()
        return bool(gone or found)

    def set_policy_names(self, policies: Mapping[str, str]) -> None:
        """The storage policies, index as text → name."""
        if policies != self._policies:
            self._policies = dict(policies)
            self._forget()

    # -- what holds

    def for_flow(self, flow: Flow) -> FlowObjectives:
        """What holds for ``flow``; bounded in time, whatever there is of objectives."""
        known = self._known.get(flow)
        if known is None:
            known = self._known[flow] = self._promise(flow)
        return known

    def has_floors(self, method: str) -> bool:
        """True when any floor of this method is in force, whether its target is active or not."""
        return method in self._with_floors

    def has_ceilings(self, method: str) -> bool:
        """The same for ceilings."""
        return method in self._with_ceilings

    def governs(self, method: str) -> bool:
        """True when anything of this method may be held back."""
        return self.has_floors(method) or self.has_ceilings(method)

    def side(self, method: str) -> str:
        """Where bytes of this method are held back.

        Uploads always at the proxies: what an object server holds back lies in buffers until the proxy gives up.
        """
        if method == REPLICATION:
            return STORAGE_NODE
        sides = self._sides.get(method)
        return STORAGE_NODE if method == GET and sides == {STORAGE_NODE} else PROXY

    @property
    def replication(self) -> Objective | None:
        """The cap on replication."""
        return min(self._replication, key=_order, default=None)

    def named_objectives(self, method: str) -> list[Objective]:
        """Objectives with a floor or ceiling for one tenant or container by its name."""
        return self._named.get(method, [])

    def has_group_floors(self, method: str) -> bool:
        """True when any floor of this method is for a group or ALL."""
        return method in self._wide

    def member_floors(self, method: str) -> Sequence[MemberFloor]:
        """Floors of this method that members of groups have from these, of up to :data:`MAX_MEMBERS`."""
        known = self._members.get(method)
        if known is None:
            known = self._members[method] = list(self._members_of(method))
        return known

    def policy_index(self, storage_policy: str) -> int:
        """Of a storage policy as it was written; :data:`~sluice_core.messages.bandwidth.ANY_POLICY` when that is
        not known.
        """
        if not storage_policy:
            return ANY_POLICY
        if storage_policy.isdigit():
            return int(storage_policy)
        named = {name.lower(): index for index, name in self._policies.items()}
        return int(named.get(storage_policy.lower(), ANY_POLICY))

    def _promise(self, flow: Flow) -> FlowObjectives:
        tenant = self._first(flow, TENANT, flow.account)
        container = self._first(flow, CONTAINER, flow.path) if flow.container else None
        own = tenant if container is None else container
        bound = tenant if tenant is not None and tenant.ceiling else None
        return FlowObjectives(own, bound) if own is not None or bound is not None else _NOTHING

    def _members_of(self, method: str) -> Iterator[MemberFloor]:
        groups = {
            (one.target.level, one.target.name, self.policy_index(said.storage_policy))
            for one in chain.from_iterable(self._groups_of.values())
            for said in self._objectives[one.id]
            if said.method == method and (said.floor or said.node_floor)
        }
        paths = (
            (level, path, policy)
            for level, name, policy in sorted(groups)
            for path in self._groups.members(level, name)
        )
        some = list(islice(paths, MAX_MEMBERS))
        groups_of = {level: self._groups_with(level, {path for _, path, _ in some}) for level in self._groups_of}
        # what holds depends on who speaks alone, which is the same for nearly all of them
        known: dict[tuple[str | int, ...], Objective | None] = {}
        found: set[tuple[str, str]] = set()
        for level, path, policy in some:
            speak = [*self._names.get((level, path), ()), *groups_of[level].get(path, ())]
            key = (level, policy, *(one.id for one in speak))
            if key not in known:
                known[key] = self._narrowest([*speak, *self._alls.get(level, ())], method, policy)
            own = known[key]
            if own is None or own.select != GROUP or not (own.floor or own.node_floor):
                continue
            if (own.assignment, path) not in found:
                found.add((own.assignment, path))
                account, _, container = path.partition("/")
                yield MemberFloor(own, account, container, policy)

    def _groups_with(self, level: str, paths: Set[str]) -> dict[str, list[Assignment]]:
        """What groups are told that have any of ``paths``, by these."""
        found: dict[str, list[Assignment]] = {}
        for one in self._groups_of[level]:
            for path in self._groups.among(level, one.target.name, paths):
                found.setdefault(path, []).append(one)
        return found

    def _first(self, flow: Flow, level: str, path: str) -> Objective | None:
        return self._narrowest(list(self._of(level, path)), flow.method, flow.policy)

    def _narrowest(self, candidates: list[Assignment], method: str, policy: int) -> Objective | None:
        """Of candidates of one level."""
        fitting = (
            one
            for assignment in _in_force(candidates)
            for one in self._objectives[assignment.id]
            if one.method == method and self._is_policy(one.storage_policy, policy)
        )
        return min(fitting, key=_order, default=None)

    def _of(self, level: str, path: str) -> Iterator[Assignment]:
        yield from self._names.get((level, path), ())
        for one in self._groups_of.get(level, ()):
            if self._groups.contains(level, one.target.name, path):
                yield one
        yield from self._alls.get(level, ())

    def _is_policy(self, written: str, index: int) -> bool:
        if not written or written == str(index):
            return True
        return self._policies.get(str(index), "").lower() == written.lower()

    # -- the index

    def _forget(self) -> None:
        """What was found is to be looked up anew."""
        self.changes += 1
        self._known: dict[Flow, FlowObjectives] = {}
        self._members: dict[str, Sequence[MemberFloor]] = {}

    def _index(self) -> None:
        self._forget()
        self._objectives: dict[str, tuple[Objective, ...]] = {}
        self._names: dict[tuple[str, str], list[Assignment]] = {}
        self._groups_of: dict[str, list[Assignment]] = {}
        self._alls: dict[str, list[Assignment]] = {}
        self._replication: list[Objective] = []
        self._with_floors: set[str] = set()
        self._with_ceilings: set[str] = set()
        self._sides: dict[str, set[str]] = {}
        self._named: dict[str, list[Objective]] = {}
        self._wide: set[str] = set()
        for one in self._by_id.values():
            self._objectives[one.id] = said = _safely(one)
            if one.kind == REPLICATION_KIND:
                self._replication += said
            else:
                self._file(one)
        wide = (one for several in (*self._groups_of.values(), *self._alls.values()) for one in several)
        for assignment in wide:
            for objective in self._objectives[assignment.id]:
                self._note(objective)
                if objective.floor or objective.node_floor:
                    self._wide.add(objective.method)
        for several in self._names.values():
            for assignment in _in_force(several):
                for objective in self._objectives[assignment.id]:
                    self._note(objective)
                    self._show(objective)

    def _file(self, one: Assignment) -> None:
        target = one.target
        if one.member or target.select == NAME:
            self._names.setdefault((target.level, one.path() or target.name), []).append(one)
        elif target.select == GROUP:
            self._groups_of.setdefault(target.level, []).append(one)
        elif target.select == ALL:
            self._alls.setdefault(target.level, []).append(one)

    def _note(self, one: Objective) -> None:
        self._sides.setdefault(one.method, set()).add(one.side)
        if one.floor or one.node_floor:
            self._with_floors.add(one.method)
        if one.ceiling:
            self._with_ceilings.add(one.method)

    def _show(self, one: Objective) -> None:
        self._named.setdefault(one.method, []).append(one)


def _in_force(candidates: list[Assignment]) -> Iterable[Assignment]:
    """What is left of candidates of one level."""
    if len(candidates) == 1:  # by far the most frequent
        return candidates if candidates[0].verb != "delete" else ()
    return Candidates(candidates).resolve(_NO_FACTS).get(BANDWIDTH, ()) if candidates else ()


def _ours(assignment: Assignment) -> bool:
    return assignment.kind in (BANDWIDTH, REPLICATION_KIND)


def _order(one: Objective) -> tuple[int, bool, int, str]:
    return one.rank, not one.storage_policy, -one.created, one.assignment


def _safely(assignment: Assignment) -> tuple[Objective, ...]:
    try:
        return tuple(_read(assignment))
    except (TypeError, ValueError) as error:
        log.error("assignment `%s` promises nothing, it cannot be read: %s", assignment.id, error)
        return ()


def _read(assignment: Assignment) -> Iterator[Objective]:
    target = assignment.target
    if assignment.kind == REPLICATION_KIND:
        ceiling = float(assignment.params.get(MAX_REPLICATION, 0.0))
        if target.level == CLUSTER and assignment.verb != "delete" and ceiling > 0:
            yield Objective(
                assignment.id, assignment.policy, REPLICATION, CLUSTER, target.select, "", ceiling=ceiling,
                side=STORAGE_NODE, rank=target.rank(), created=assignment.created,
            )  # fmt: skip
    else:
        yield from objectives(assignment)
