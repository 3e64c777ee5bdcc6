"""Which actions hold for one request: scope, accumulation and order.

The rules (design section 5):

* Conditions are applied first.  Then, per kind, the narrowest scope that has any applicable
  action wins as a whole, and all actions of that scope and kind form one pipeline.
* A *protective* SET is inherited through narrower scopes until an explicit DELETE names it.
* The same keyword twice at one scope: the newer policy wins; a DELETE that wins removes it.
* Order is the declared stage, then the policies' age, then the order in the sentence.

Used by the proxy middleware on each request and by the controller to explain itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from sluice_core.messages import Assignment
from sluice_core.predicate import Facts, Test, compile_predicate

Pipeline = tuple[Assignment, ...]
Pipelines = dict[str, Pipeline]


def _age(assignment: Assignment) -> tuple[int, str, int]:
    return (assignment.created, assignment.policy, assignment.order)


def _place_in_line(assignment: Assignment) -> tuple[int, int, str, int]:
    return (assignment.stage, *_age(assignment))


class Candidates:
    """All assignments that may concern one object, prepared for many requests.

    ``constant`` holds the answer when no assignment asks about the request, ``keywords`` everything
    that any of them may set.
    """

    __slots__ = ("_kinds", "constant", "keywords")

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        kinds: dict[str, list[list[tuple[Assignment, Test]]]] = {}
        conditional = False
        ordered = sorted(assignments, key=lambda one: (one.kind, one.target.rank(), _age(one)))
        for (kind, _), members in groupby(ordered, key=lambda one: (one.kind, one.target.rank())):
            rank = [(one, compile_predicate(one.when)) for one in members]
            conditional = conditional or any(one.when is not True for one, _ in rank)
            kinds.setdefault(kind, []).append(rank)
        self._kinds = kinds
        self.keywords = frozenset(one.keyword for one in ordered if one.verb != "delete")
        self.constant: Pipelines | None = None if conditional else self._resolve(_no_facts)

    def resolve(self, facts: Facts) -> Pipelines:
        """Kind → pipeline, in running order on PUT; kinds without actions are left out."""
        if self.constant is not None:
            return self.constant
        return self._resolve(lambda test: test(facts) is True)

    def _resolve(self, holds: Callable[[Test], bool]) -> Pipelines:
        found: Pipelines = {}
        for kind, ranks in self._kinds.items():
            pipeline = _one_kind(ranks, holds)
            if pipeline:
                found[kind] = pipeline
        return found


def _no_facts(test: Test) -> bool:
    return True


def _one_kind(ranks: list[list[tuple[Assignment, Test]]], holds: Callable[[Test], bool]) -> Pipeline:
    if len(ranks) == 1 and len(ranks[0]) == 1:  # by far the most frequent
        only, holds_for = ranks[0][0]
        return (only,) if only.verb != "delete" and holds(holds_for) else ()
    chosen: dict[str, Assignment] = {}
    deleted: set[str] = set()
    decided = False
    for rank in ranks:
        winners: dict[str, Assignment] = {}
        for assignment, test in rank:  # oldest first, so the newest stays
            if holds(test):
                winners[assignment.keyword] = assignment
        for keyword, assignment in winners.items():
            if assignment.verb == "delete":
                if keyword not in chosen:
                    deleted.add(keyword)
            elif keyword not in deleted and keyword not in chosen and (not decided or assignment.protective):
                chosen[keyword] = assignment
        decided = decided or bool(winners)
    return tuple(sorted(chosen.values(), key=_place_in_line))
