"""The objectives in force, indexed by the scope of their assignments."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from sluice_core.describe import BANDWIDTH, STORAGE_NODE
from sluice_core.describe import REPLICATION as REPLICATION_KIND
from sluice_core.messages.bandwidth import MAX_REPLICATION, REPLICATION, Objective, objectives
from sluice_core.messages.policies import ALL, CLUSTER, GROUP, NAME, Assignment
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates

log = logging.getLogger(__name__)

#: Objectives do not depend on requests.
_NO_FACTS: Final = Facts("")


class ObjectiveIndex:
    """:param assignments: of bandwidth and replication; one that cannot be read is logged and has no objective"""

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        #: Id of an assignment → its objectives.
        self.objectives: dict[str, tuple[Objective, ...]] = {}
        #: Assignments to one target by its name, by level and path; to groups, and to ALL, by level.
        self.by_name: dict[tuple[str, str], list[Assignment]] = {}
        self.of_groups: dict[str, list[Assignment]] = {}
        self.of_all: dict[str, list[Assignment]] = {}
        #: Caps on replication.
        self.replication: list[Objective] = []
        #: Methods with any floor, any ceiling, and any floor for a group or ALL.
        self.with_floors: set[str] = set()
        self.with_ceilings: set[str] = set()
        self.with_group_floors: set[str] = set()
        #: Method → the sides where objectives throttle it.
        self.sides: dict[str, set[str]] = {}
        #: Method → objectives for one target by its name.
        self.named: dict[str, list[Objective]] = {}
        for assignment in assignments:
            self.objectives[assignment.id] = own = _objectives_of(assignment)
            if assignment.kind == REPLICATION_KIND:
                self.replication += own
            else:
                self._add_target(assignment)
        for several in (*self.of_groups.values(), *self.of_all.values()):
            for objective in self._objectives_in(several):
                self._add_method(objective)
                if objective.floor or objective.node_floor:
                    self.with_group_floors.add(objective.method)
        for several in self.by_name.values():
            for objective in self._objectives_in(in_force(several)):
                self._add_method(objective)
                self.named.setdefault(objective.method, []).append(objective)

    def _objectives_in(self, assignments: Iterable[Assignment]) -> Iterator[Objective]:
        for assignment in assignments:
            yield from self.objectives[assignment.id]

    def _add_target(self, assignment: Assignment) -> None:
        target = assignment.target
        if assignment.member or target.select == NAME:
            self.by_name.setdefault((target.level, assignment.path() or target.name), []).append(assignment)
        elif target.select == GROUP:
            self.of_groups.setdefault(target.level, []).append(assignment)
        elif target.select == ALL:
            self.of_all.setdefault(target.level, []).append(assignment)

    def _add_method(self, objective: Objective) -> None:
        self.sides.setdefault(objective.method, set()).add(objective.side)
        if objective.floor or objective.node_floor:
            self.with_floors.add(objective.method)
        if objective.ceiling:
            self.with_ceilings.add(objective.method)


def has_objectives(assignment: Assignment) -> bool:
    """True for assignments of bandwidth and replication."""
    return assignment.kind in (BANDWIDTH, REPLICATION_KIND)


def in_force(candidates: list[Assignment]) -> Iterable[Assignment]:
    """Yield the assignments of one level that newer SETs and DELETEs leave in force."""
    if len(candidates) == 1:  # by far the most frequent
        return candidates if candidates[0].verb != "delete" else ()
    return Candidates(candidates).resolve(_NO_FACTS).get(BANDWIDTH, ()) if candidates else ()


def precedence(objective: Objective) -> tuple[int, bool, int, str]:
    """The sort key of objectives: the one that wins comes first."""
    return objective.rank, not objective.storage_policy, -objective.created, objective.assignment


def _objectives_of(assignment: Assignment) -> tuple[Objective, ...]:
    try:
        return tuple(_read(assignment))
    except (TypeError, ValueError) as error:
        log.error("assignment `%s` has no effect, it cannot be read: %s", assignment.id, error)
        return ()


def _read(assignment: Assignment) -> Iterator[Objective]:
    if assignment.kind != REPLICATION_KIND:
        yield from objectives(assignment)
        return
    target, ceiling = assignment.target, float(assignment.params.get(MAX_REPLICATION, 0.0))
    if target.level == CLUSTER and assignment.verb != "delete" and ceiling > 0:
        yield Objective(
            assignment.id, assignment.policy, REPLICATION, CLUSTER, target.select, "", ceiling=ceiling,
            side=STORAGE_NODE, rank=target.rank(), created=assignment.created,
        )  # fmt: skip
