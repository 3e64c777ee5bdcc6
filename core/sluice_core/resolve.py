"""The actions in force for one request: scope, accumulation and order.

The rules (design section 5):

* Conditions are applied first.  Then, per kind, the narrowest scope that has an applicable
  action wins as a whole, and all actions of that scope and kind form one pipeline.
* A *protective* SET is inherited through narrower scopes until an explicit DELETE names it.
* The same keyword twice at one scope: the newer policy wins; a DELETE that wins removes it.  Objectives of
  ``bandwidth`` for two storage policies are two settings (:func:`identity`), and a DELETE removes all of them.
  A DELETE applies only at its own level: the bytes of a container without an objective count as its tenant's.
* A narrower objective of ``bandwidth`` replaces a wider one only for the same method and storage policy: a container's
  floor for GET does not change its tenant's for PUT.
* Keywords of kind ``motif`` are independent of each other: a motif that a container attaches does not change its
  tenant's space.  Rules of ``elasticity`` are read from the narrowest to the first that describes a space
  (``sluice_core.messages.elasticity``).
* Order is the declared stage, then the policies' age, then the order in the sentence.

The proxy middleware uses it on each request, and the controller uses it for explanations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from math import inf
from typing import Any, Final

from sluice_core.describe import BANDWIDTH, MOTIF, PROXY
from sluice_core.messages.bandwidth import (
    CEILINGS,
    FLOORS,
    GET,
    NODE_FLOORS,
    PUT,
    STORAGE_POLICY,
    Objective,
    objectives,
)
from sluice_core.messages.elasticity import ELASTICITY, elasticity_rules
from sluice_core.messages.policies import CONTAINER, TENANT, Assignment
from sluice_core.messages.predicate import Facts, Test, compile_predicate, predicate_words

Pipeline = tuple[Assignment, ...]
Pipelines = dict[str, Pipeline]
_Rank = list[tuple[Assignment, Test]]
#: Keyword, and the storage policy that an objective of bandwidth is for.
Identity = tuple[str, str]
#: Method and storage policy (empty: all) that an objective of bandwidth applies to.
Aspect = tuple[str, str]
#: Method → its parameters of ``bandwidth``.
_RATES: Final = {
    method: tuple(names[method] for names in (FLOORS, CEILINGS, NODE_FLOORS) if method in names)
    for method in (GET, PUT)
}


def identity(keyword: str, params: Mapping[str, Any]) -> Identity:
    """Identity of a setting at one scope: the keyword, and for ``bandwidth`` its storage policy (empty: all)."""
    return keyword, str(params.get(STORAGE_POLICY, "")).casefold() if keyword == BANDWIDTH else ""


def replaces(newer: Assignment, older: Assignment) -> bool:
    """Whether ``newer`` replaces all of ``older`` at one scope while both hold."""
    if newer.verb == "delete":
        return newer.keyword == older.keyword
    return identity(newer.keyword, newer.params) == identity(older.keyword, older.params)


def bandwidth_aspects(assignment: Assignment) -> frozenset[Aspect]:
    """The methods and storage policies that an objective of bandwidth applies to; empty for other kinds."""
    if assignment.kind != BANDWIDTH:
        return frozenset()
    given = assignment.params
    policy = str(given.get(STORAGE_POLICY, "")).casefold()
    return frozenset((method, policy) for method, names in _RATES.items() if any(given.get(name) for name in names))


def _age(assignment: Assignment) -> tuple[int, str, int]:
    return (assignment.created, assignment.policy, assignment.order)


def running_order(assignment: Assignment) -> tuple[int, int, str, int]:
    """Sort key of the assignments of one pipeline, for their running order on PUT."""
    return (assignment.stage, *_age(assignment))


class Candidates:
    """All assignments that may apply to one object, prepared for many requests.

    ``constant`` holds the answer when no assignment depends on the request, ``kinds`` the kinds of the assignments,
    ``keywords`` all keywords that they may set, ``asked`` the words of all predicates, ``own_account`` the methods for
    which the object's container has bandwidth objectives apart from its tenant, ``bounded`` whether there is a ceiling.
    """

    __slots__ = (
        "_bounds", "_conditional", "_settled", "asked", "bounded", "constant", "keywords", "kinds", "own_account",
    )  # fmt: skip

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        kinds: dict[str, list[_Rank]] = {}
        ordered = sorted(assignments, key=lambda one: (one.kind, one.target.rank(), _age(one)))
        for (kind, _), members in groupby(ordered, key=lambda one: (one.kind, one.target.rank())):
            kinds.setdefault(kind, []).append([(one, compile_predicate(one.when)) for one in members])
        asking = {one.kind for one in ordered if one.when is not True}
        self._conditional = {kind: ranks for kind, ranks in kinds.items() if kind in asking}
        self._settled = _resolve({kind: ranks for kind, ranks in kinds.items() if kind not in asking}, _no_facts)
        self.kinds = frozenset(kinds)
        self.keywords = frozenset(one.keyword for one in ordered if one.verb != "delete")
        self.asked = frozenset[str]().union(*(predicate_words(one.when) for one in ordered))
        self.own_account = _own_account(kinds.get(BANDWIDTH, ()))
        self._bounds = _bounds(kinds.get(BANDWIDTH, ()))
        self.bounded = bool(self._bounds)
        self.constant: Pipelines | None = None if asking else self._settled

    def ceiling(self, method: str, side: str, policy: int, name: str) -> float:
        """Return the ceiling of the object's tenant or container over the whole cluster, in bytes per second; 0: none.

        :param side: where the bytes pass; ceilings of the other side do not count
        :param policy: index of the storage policy, and its name
        """
        first: dict[str, float] = {}
        for bound in self._bounds:
            if bound.method == method and bound.storage_policy.casefold() in ("", str(policy), name.casefold()):
                kept_at = bound.side if method == GET else PROXY
                first.setdefault(bound.level, bound.ceiling if kept_at == side else 0.0)
        return min(filter(None, first.values()), default=0.0)

    def undecided(self, kind: str, facts: Facts) -> list[Assignment]:
        """Return the assignments of ``kind`` whose conditions depend on a fact that ``facts`` lacks."""
        ranks = self._conditional.get(kind, ())
        return [one for rank in ranks for one, test in rank if test(facts) is None]

    def resolve(self, facts: Facts) -> Pipelines:
        """Kind → pipeline, in running order on PUT; kinds without actions are left out."""
        if self.constant is not None:
            return self.constant
        return {**self._settled, **_resolve(self._conditional, lambda test: test(facts) is True)}


def _resolve(kinds: Mapping[str, list[_Rank]], holds: Callable[[Test], bool]) -> Pipelines:
    pipelines: Pipelines = {}
    for kind, ranks in kinds.items():
        pipeline = _RESOLVERS.get(kind, _one_kind)(ranks, holds)
        if pipeline:
            pipelines[kind] = pipeline
    return pipelines


def _no_facts(test: Test) -> bool:
    return True


def _own_account(ranks: Iterable[_Rank]) -> frozenset[str]:
    """The methods of objectives at the level of containers; a DELETE there ends wider ones of that level."""
    return frozenset(method for one in _of_level(CONTAINER, ranks) for method, _ in bandwidth_aspects(one))


def _bounds(ranks: Iterable[_Rank]) -> tuple[Objective, ...]:
    """The objectives in force at each level, in the order in which they decide; empty unless one is a ceiling."""
    found = [one for level in (TENANT, CONTAINER) for said in _of_level(level, ranks) for one in _readable(said)]
    found.sort(key=lambda one: (one.rank, not one.storage_policy, -one.created, one.assignment))
    return tuple(found) if any(one.ceiling for one in found) else ()


def _readable(said: Assignment) -> tuple[Objective, ...]:
    """The objectives of an assignment; empty if it cannot be read, since that must not fail a request."""
    try:
        return tuple(one for one in objectives(said) if 0 <= one.ceiling < inf)
    except (TypeError, ValueError):
        return ()


def _of_level(level: str, ranks: Iterable[_Rank]) -> Pipeline:
    return _promises([rank for rank in ranks if rank[0][0].target.level == level], _no_facts)


def _one_kind(ranks: list[_Rank], holds: Callable[[Test], bool]) -> Pipeline:
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
    return tuple(sorted(chosen.values(), key=running_order))


def _promises(ranks: list[_Rank], holds: Callable[[Test], bool]) -> Pipeline:
    """The objectives of bandwidth in force: each applies to an aspect that no narrower one covers."""
    chosen: list[Assignment] = []
    said: set[Aspect] = set()
    deleted: set[str] = set()
    for rank in ranks:
        winners, ended = _winners(rank, holds)
        level = rank[0][0].target.level
        found = [one for one in winners if level not in deleted and not _covers(said, bandwidth_aspects(one))]
        chosen += found
        said.update(*map(bandwidth_aspects, found))
        if ended:
            deleted.add(level)
    return tuple(sorted(chosen, key=running_order))


def _motifs(ranks: list[_Rank], holds: Callable[[Test], bool]) -> Pipeline:
    """The attached motifs, then the rules of the space, narrowest first."""
    attached = [[pair for pair in rank if pair[0].keyword != ELASTICITY] for rank in ranks]
    rules = [[one for one, test in rank if one.keyword == ELASTICITY and holds(test)] for rank in ranks]
    # oldest first, so the newest stays
    decisive = elasticity_rules([rank[-1] if rank else None for rank in rules])
    return (*_one_kind([rank for rank in attached if rank], holds), *decisive)


_RESOLVERS: Final = {BANDWIDTH: _promises, MOTIF: _motifs}


def _winners(rank: _Rank, holds: Callable[[Test], bool]) -> tuple[Iterable[Assignment], bool]:
    """Return what one scope sets, and whether it ends the settings of wider scopes of its level."""
    winners: dict[Identity, Assignment] = {}
    ended = False
    for assignment, test in rank:  # oldest first, so the newest stays
        if not holds(test):
            continue
        if assignment.verb == "delete":
            ended = True
            winners.clear()
        else:
            key = identity(assignment.keyword, assignment.params)
            winners[key] = assignment
            ended = ended and bool(key[1])  # an objective for all storage policies: the newer one replaces it
    return winners.values(), ended


def _covers(said: set[Aspect], of_one: frozenset[Aspect]) -> bool:
    """Whether the narrower objectives cover all aspects of one objective."""
    return bool(of_one) and all((method, policy) in said or (method, "") in said for method, policy in of_one)
