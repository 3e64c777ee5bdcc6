"""Checks sentences before they are stored: their problems, their meaning, and the policies that they would override.

The sentence is compared with each policy about the same objects, and both are resolved by the rules of the nodes
(``sluice_core.resolve``) for a request for which all conditions hold.  So the result is what happens wherever and
while both hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.effective import Overridden, explain_overridden
from sluice_controller.policies.policy_update import PolicyUpdate, apply_update
from sluice_controller.policies.selectors import find_cached
from sluice_controller.policies.services import Authorize
from sluice_core.describe import RESOURCE_TYPES
from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_dsl.checks.conflicts import ExistingPolicy, targets_overlap
from sluice_dsl.compile import Compiled, compile_text
from sluice_dsl.explain import explain_plan
from sluice_dsl.plan import Plan, assignment_for

#: The maximum number of actions of each kind in an answer.
MOST: Final = 100
#: The maximum number of sentences of one text that are compared with all policies.
_PREVIEWED: Final = 20
#: The id of the new sentence, which has none yet.
_NEW: Final = ""


@dataclass(slots=True)
class Preview:
    """Actions of other policies that the sentence overrides, and its own actions that other policies override.

    ``policy`` of each is the other one.  ``more`` is true if there may be further ones, which are not listed.
    """

    overrides: list[Overridden] = field(default_factory=list)
    overridden_by: list[Overridden] = field(default_factory=list)
    more: bool = False


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A valid sentence, with an explanation of each part, and its effect on other policies."""

    compiled: Compiled
    explanation: dict[str, str]
    preview: Preview


def check_text(backend: Backend, text: str, replaces: str, allow: Authorize) -> list[CheckedSentence]:
    """Check the sentences of ``text`` without a change.

    :param replaces: the id of the policy whose text is to be replaced; empty for new policies
    :param allow: called with the plans of the text, before anything is told about other policies

    :raises PolicyErrors: all errors in it
    :raises NotFound: when there is no policy ``replaces``
    """
    contents = backend.policy_cache.contents()
    compiled: Sequence[Compiled]
    others: Sequence[CachedPolicy] = contents.ordered
    created = int(backend.now() * 1000)
    if replaces:
        old = find_cached(contents, replaces)
        allow([old.plan])
        others = [one for one in others if one is not old]
        created = old.policy.created
        compiled = apply_update(backend, contents, old, PolicyUpdate(text))[1]
    else:
        plain = compile_text(text, backend.vocabulary(contents), contents.existing)
        compiled = check_bandwidth(backend, text, plain, others)
    allow([one.plan for one in compiled])
    catalogue = backend.described(contents)
    return [
        CheckedSentence(
            sentence,
            explain_plan(sentence.plan, catalogue),
            preview(sentence.plan, others, created) if number < _PREVIEWED else Preview(more=True),
        )
        for number, sentence in enumerate(compiled)
    ]


def preview(plan: Plan, others: Sequence[CachedPolicy], created: int) -> Preview:
    """The effect of the sentence of ``plan`` and of ``others``, which exist, on each other.

    :param created: Unix time in milliseconds; of two policies of the same scope the newer one wins
    """
    result = Preview()
    kinds = {action.kind for action in plan.actions}
    account = ExistingPolicy(_NEW, plan).account
    rank = plan.target.rank()
    for other in others:
        side = result.overridden_by if other.plan.target.rank() < rank else result.overrides
        full = len(side) >= MOST
        if full and result.more:  # of 10,000 containers inside, only a few are compared in detail
            continue
        if account and other.existing.account not in (account, ""):
            continue
        if not other.policy.enabled or kinds.isdisjoint(action.kind for action in other.plan.actions):
            continue
        if not targets_overlap(plan.target, other.plan.target):
            continue
        if full:
            result.more = True
        else:
            _add(result, plan, other, created)
    return result


def _add(found: Preview, plan: Plan, standing: CachedPolicy, created: int) -> None:
    new, old = (
        _assignments(_NEW, plan, created),
        _assignments(standing.policy.id, standing.plan, standing.policy.created),
    )
    seen: set[tuple[str, str, str]] = set()
    for lost in _overridden(new, old):
        theirs = lost.policy != _NEW
        if (lost.policy, lost.kind, lost.keyword) not in seen:
            seen.add((lost.policy, lost.kind, lost.keyword))
            other = Overridden(standing.policy.id, lost.kind, lost.keyword, lost.reason)
            (found.overrides if theirs else found.overridden_by).append(other)


def _assignments(policy_id: str, plan: Plan, created: int) -> list[Assignment]:
    return [assignment_for(policy_id, plan, number, created, True) for number in range(len(plan.actions))]


def _overridden(new: Iterable[Assignment], old: Iterable[Assignment]) -> Iterator[Overridden]:
    """Yield the assignments that lose when both are in force, of objects and of volumes."""
    facts = Facts("PUT")  # no condition reads them
    for world in RESOURCE_TYPES:
        both = [one for one in (*new, *old) if one.concerns(world)]
        pipelines = Candidates(both).resolve(facts)
        for kind in dict.fromkeys(one.kind for one in both):
            mine = [one for one in both if one.kind == kind]
            if len({one.policy for one in mine}) == 2:
                yield from explain_overridden(mine, pipelines, facts)[1]
