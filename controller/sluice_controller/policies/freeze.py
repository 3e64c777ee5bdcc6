"""``DELETE …?keep=true``: what an actor has in force becomes a static policy.

The assignments stay word for word (target, member, predicate, age, so that scope and order do not
change); only their policy is another one, without an actor, which can be listed and deleted like any.  Members of a
group or ALL cannot be derived from a sentence, so the plan's data keep the assignments themselves (``KEPT``), for
when the policy is disabled and enabled again, exported, or rolled back to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_core.messages.policies import NAME, Assignment, Policy
from sluice_core.messages.predicate import Predicate, any_of
from sluice_dsl.assignments import static_assignments
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.ast import And, Clause, Condition, Not, Or, Sentence, Target, Word
from sluice_dsl.syntax.grammar import parse

#: Name in the data of a kept policy's plan; plans themselves do not know it.
KEPT: Final = "kept"


def assignments_in_force(policy: Policy, plan: Plan) -> tuple[Assignment, ...]:
    """What is in force for ``policy`` by itself: nothing while it is disabled, or when an actor decides.

    :raises DecodeError: when what it keeps cannot be read
    """
    if policy.dynamic or not policy.enabled:
        return ()
    kept = policy.plan.get(KEPT)
    if kept is None:
        return static_assignments(policy.id, plan, policy.created)
    return tuple(map(Assignment.from_data, kept))


def static_puts(policies: Iterable[tuple[Policy, Plan]]) -> tuple[Assignment, ...]:
    """What is in force for all of ``policies`` by themselves."""
    return tuple(put for policy, plan in policies for put in assignments_in_force(policy, plan))


def freeze_policy(
    old: CachedPolicy, in_force: Sequence[Assignment], new_id: str, by: str
) -> tuple[CachedPolicy, tuple[Assignment, ...]]:
    """The static policy ``new_id`` that holds ``in_force``, and its assignments."""
    numbers = {action: number for number, action in enumerate(sorted({_action(one) for one in in_force}))}
    plan = replace(
        old.plan,
        actions=tuple(old.plan.actions[action] for action in numbers),
        condition=any_of(*(one.when for one in in_force)),
        sustained=0.0,
        metrics=(),
    )
    puts = tuple(_renamed(one, new_id, numbers[_action(one)]) for one in in_force)
    policy = Policy(
        id=new_id,
        source=f"# kept of policy {old.policy.id}\n{old.policy.source}",
        text="; ".join(_sentences(old, in_force)),
        plan={**plan.to_data(), KEPT: [one.to_data() for one in puts]},
        dynamic=False,
        created=old.policy.created,
        created_by=by,
    )
    return CachedPolicy(policy, 0, plan), puts


def _action(assignment: Assignment) -> int:
    """The action's number out of the id ``<policy>.<number>[@member]``."""
    return int(assignment.id.partition("@")[0].rpartition(".")[2])


def _renamed(one: Assignment, policy_id: str, number: int) -> Assignment:
    member = f"@{one.member}" if one.member else ""
    return replace(one, id=f"{policy_id}.{number}{member}", policy=policy_id)


def _sentences(old: CachedPolicy, in_force: Iterable[Assignment]) -> Iterator[str]:
    """One sentence per member and remaining condition."""
    sentence = parse(old.policy.text, Reporter(old.policy.text))[0]
    groups: dict[tuple[str, str], list[Assignment]] = {}
    for one in in_force:
        groups.setdefault((one.member, repr(one.when)), []).append(one)
    for (member, _), members in sorted(groups.items()):
        yield str(_static(sentence, member, members))


def _static(sentence: Sentence, member: str, members: Sequence[Assignment]) -> Sentence:
    target = Target(members[0].target.level, NAME, Word(member)) if member else sentence.target
    actions = tuple(
        replace(action, life="")
        for number, action in enumerate(sentence.actions)
        if number in {_action(one) for one in members}
    )
    return Sentence(target, actions, condition_from_predicate(members[0].when))


def condition_from_predicate(predicate: Predicate) -> Condition | None:
    """``predicate`` as it is written; None when it always holds."""
    if isinstance(predicate, bool):
        return None
    word, *rest = predicate
    match word:
        case "not":
            return Not(_some(rest[0]))
        case "and":
            return And(tuple(map(_some, rest)))
        case "or":
            return Or(tuple(map(_some, rest)))
        case "size" | "compressibility":
            return Clause(Word(f"OBJECT_{word.upper()}"), rest[0], Word(f"{rest[1]}"))
    subject = {"type": "OBJECT_TYPE", "tag": "OBJECT_TAG", "method": "METHOD"}[word]
    clauses = tuple(Clause(Word(subject), "==", Word(name)) for name in rest[0])
    return clauses[0] if len(clauses) == 1 else Or(clauses)


def _some(predicate: Predicate) -> Condition:
    """A part of a predicate, which is never a constant."""
    condition = condition_from_predicate(predicate)
    assert condition is not None, predicate
    return condition
