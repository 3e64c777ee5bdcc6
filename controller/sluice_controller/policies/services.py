"""Operations on policies; each function makes one atomic change or none.

``DELETE …?keep=true`` makes a static policy of the actions that an actor has in force.  The assignments stay unchanged
(target, member, predicate, age, so that scope and order do not change); only their policy is another one, without an
actor, which can be listed and deleted like any.  Members of a group or ALL cannot be derived from a sentence, so the
plan's data contain the assignments themselves (``KEPT``), for when the policy is disabled and enabled again, exported,
or restored.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import cluster_now
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_controller.errors import check_version
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.selectors import PolicyView, find_cached, policy_enforcement
from sluice_controller.validation.names import near_miss
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import NAME, Assignment, Policy
from sluice_core.messages.predicate import Predicate, any_of
from sluice_core.store.records import Draft, Head
from sluice_dsl.compile import Compiled, compile_text
from sluice_dsl.diagnostics import Diagnostic, Reporter
from sluice_dsl.plan import Plan, static_assignments
from sluice_dsl.syntax.ast import And, Clause, Condition, Not, Or, Sentence, Target, Word
from sluice_dsl.syntax.grammar import parse

#: Name in the data of a kept policy's plan; plans themselves do not have it.
KEPT: Final = "kept"


def assignments_in_force(policy: Policy, plan: Plan) -> tuple[Assignment, ...]:
    """The assignments of ``policy`` without an actor: none while it is disabled, or if an actor decides.

    :raises DecodeError: when its kept assignments are not valid
    """
    if policy.dynamic or not policy.enabled:
        return ()
    kept = policy.plan.get(KEPT)
    if kept is None:
        return static_assignments(policy.id, plan, policy.created)
    return tuple(map(Assignment.from_data, kept))


def static_puts(policies: Iterable[tuple[Policy, Plan]]) -> tuple[Assignment, ...]:
    """The assignments of all of ``policies`` without an actor."""
    return tuple(put for policy, plan in policies for put in assignments_in_force(policy, plan))


def freeze_policy(
    old: CachedPolicy, in_force: Sequence[Assignment], new_id: str, by: str
) -> tuple[CachedPolicy, tuple[Assignment, ...]]:
    """The static policy ``new_id`` with the actions ``in_force``, and its assignments."""
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
    """The action's number in the id ``<policy>.<number>[@member]``."""
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
    """``predicate`` in the form of a sentence; None if it always holds."""
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


#: Called with the plans that would be written or deleted, before anything is written; raises to refuse them.
Authorize = Callable[[Iterable[Plan]], None]


def allow_all(plans: Iterable[Plan]) -> None:
    """Refuse nothing: for callers that have authorized the change already."""


@dataclass(frozen=True, slots=True)
class WrittenPolicies:
    """The result of a change: the policies as they are now, its epoch, and the warnings about the text of each."""

    policies: tuple[CachedPolicy, ...]
    epoch: int
    warnings: tuple[tuple[Diagnostic, ...], ...] = ()

    def views(self, backend: Backend) -> list[PolicyView]:
        """The policies in the form for the API."""
        cluster = cluster_now(backend)
        catalogue = backend.described(backend.policy_cache.contents())
        return [
            PolicyView(one, None, self.epoch, policy_enforcement(one, self.epoch, cluster), catalogue)
            for one in self.policies
        ]


def create_policies(
    backend: Backend, text: str, by: str, allow: Authorize = allow_all, ids: Iterator[str] | None = None
) -> WrittenPolicies:
    """Create the policies of all sentences of ``text``, or none.

    :param ids: the ids of the policies; random ones if not given

    :raises PolicyErrors: all errors in it
    """
    names: list[str] = []

    def change() -> WrittenPolicies:
        contents = backend.policy_cache.contents()
        plain = compile_text(text, backend.vocabulary(contents), contents.existing)
        allow([one.plan for one in plain])
        compiled = check_bandwidth(backend, text, plain, contents.ordered)
        if not names:
            names.extend(islice(ids or iter(new_id, ""), len(compiled)))
        guards = reference_guards.referenced_versions(backend, contents, compiled)
        return _commit_new(backend, compiled, names, by, guards)

    return reference_guards.retry_conflicts(change)


def _commit_new(
    backend: Backend, compiled: tuple[Compiled, ...], names: Sequence[str], by: str, guards: Mapping[str, int]
) -> WrittenPolicies:
    now = int(backend.now() * 1000)
    # A millisecond apart, so that the order of the text is the order of their age.
    pairs = enumerate(zip(compiled, names, strict=True))
    policies = [new_policy(one, name, now + number, by) for number, (one, name) in pairs]
    plans = [one.plan for one in compiled]
    expect = {**guards, **{f"policy/{policy.id}": 0 for policy in policies}}
    puts = static_puts(zip(policies, plans, strict=True))
    done = backend.store.commit(Draft(by, puts=puts, policies=tuple(policies), expect=expect))
    cached = tuple(CachedPolicy(policy, done.version, plan) for policy, plan in zip(policies, plans, strict=True))
    return WrittenPolicies(cached, done.epoch, tuple(one.warnings for one in compiled))


def new_policy(sentence: Compiled, policy_id: str, created: int, by: str, origin: str = "") -> Policy:
    """The policy of a sentence.

    :param created: Unix time in milliseconds
    """
    return Policy(
        id=policy_id,
        source=sentence.source,
        text=sentence.text,
        plan=sentence.plan.to_data(),
        dynamic=sentence.plan.dynamic,
        created=created,
        created_by=by,
        origin=origin,
    )


def new_id() -> str:
    """A short id that can be typed; the store refuses one that is taken."""
    return secrets.token_hex(6)


def delete_policy(
    backend: Backend, policy_id: str, by: str, version: int | None = None, allow: Authorize = allow_all
) -> WrittenPolicies:
    """Delete a policy and its assignments, including those that its actor sets meanwhile.

    :raises NotFound: when there is none of this id
    :raises PreconditionFailed: when it is not at ``version``
    """
    old = _standing(backend, policy_id, version)
    allow([old.plan])
    try:
        done = backend.store.commit(Draft(by, policy_drops=(policy_id,), expect={f"policy/{policy_id}": old.version}))
    except Conflict:
        # The policy was deleted or replaced meanwhile: raise the matching error.
        _standing(backend, policy_id, version)
        raise
    return WrittenPolicies((), done.epoch)


def keep_policy(
    backend: Backend, policy_id: str, by: str, version: int | None = None, allow: Authorize = allow_all
) -> WrittenPolicies:
    """Delete a dynamic policy, and keep the actions that its actor has in force under a new, static policy.

    The new policy is in the result; there is none if no action is in force.

    :raises NotFound: when there is none of this id
    :raises CallerError: when it is static, so that only its id would change
    :raises PreconditionFailed: when it is not at ``version``
    """

    def change() -> WrittenPolicies:
        old = _standing(backend, policy_id, version)
        allow([old.plan])
        if not old.policy.dynamic:
            raise CallerError(f"policy `{policy_id}` is static, expected a dynamic one to keep its actions")
        # The version is read before the document that it guards: if an actor fires in between, another attempt follows.
        expect = {f"policy/{policy_id}": old.version, f"state/{policy_id}": backend.store.version(f"state/{policy_id}")}
        in_force = [one for one in backend.store.assignments() if one.policy == policy_id]
        draft = Draft(by, policy_drops=(policy_id,), expect=expect)
        if not in_force:
            return WrittenPolicies((), backend.store.commit(draft).epoch)
        new, puts = freeze_policy(old, in_force, new_id(), by)
        done = backend.store.commit(replace(draft, puts=puts, policies=(new.policy,)))
        return WrittenPolicies((replace(new, version=done.version),), done.epoch)

    return reference_guards.retry_conflicts(change, f"policy `{policy_id}` changes faster than it can be kept")


def _standing(backend: Backend, policy_id: str, version: int | None) -> CachedPolicy:
    cached = find_cached(backend.policy_cache.contents(), policy_id)
    check_version(f"policy `{policy_id}`", cached.version, version)
    return cached


def forget_node(backend: Backend, node: str) -> None:
    """Remove a node; a live one reports itself again.

    :raises NotFound: when it never reported
    """
    if not backend.store.forget_node(node):
        raise NotFound(f"there is no node `{node}`{near_miss(node, (one.node for one in backend.store.nodes()))}")


def adopt_history(backend: Backend, by: str) -> Head:
    """Make all agents adopt the current history, even if it is empty."""
    return backend.store.adopt(by)
