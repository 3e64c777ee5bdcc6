"""Operations on policies; each function makes one atomic change or none."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_controller.catalog.selectors import PolicyView, cluster_now, find_cached, policy_enforcement
from sluice_controller.errors import check_version
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.freeze import freeze_policy, static_puts
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import Policy
from sluice_core.store.records import Draft, Head
from sluice_dsl.compile import Compiled, compile_text
from sluice_dsl.diagnostics import Diagnostic
from sluice_dsl.plan import Plan

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
        """The policies as the API shows them."""
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
    # a millisecond apart, so that the order of the text is the order of their age
    pairs = enumerate(zip(compiled, names, strict=True))
    policies = [new_policy(one, name, now + number, by) for number, (one, name) in pairs]
    plans = [one.plan for one in compiled]
    expect = {**guards, **{f"policy/{policy.id}": 0 for policy in policies}}
    puts = static_puts(zip(policies, plans, strict=True))
    done = backend.store.commit(Draft(by, puts=puts, policies=tuple(policies), expect=expect))
    cached = tuple(CachedPolicy(policy, done.version, plan) for policy, plan in zip(policies, plans, strict=True))
    return WrittenPolicies(cached, done.epoch, tuple(one.warnings for one in compiled))


def new_policy(one: Compiled, policy_id: str, created: int, by: str, origin: str = "") -> Policy:
    """The policy of a sentence.

    :param created: unix time in milliseconds
    """
    return Policy(
        id=policy_id,
        source=one.source,
        text=one.text,
        plan=one.plan.to_data(),
        dynamic=one.plan.dynamic,
        created=created,
        created_by=by,
        origin=origin,
    )


def new_id() -> str:
    """An id that can be typed; the store refuses it should it be taken."""
    return secrets.token_hex(6)


def delete_policy(
    backend: Backend, policy_id: str, by: str, version: int | None = None, allow: Authorize = allow_all
) -> WrittenPolicies:
    """Delete a policy and withdraw what it set, including what its actor sets meanwhile.

    :raises NotFound: when there is none of this id
    :raises PreconditionFailed: when it is not at ``version``
    """
    old = _standing(backend, policy_id, version)
    allow([old.plan])
    try:
        done = backend.store.commit(Draft(by, policy_drops=(policy_id,), expect={f"policy/{policy_id}": old.version}))
    except Conflict:
        # somebody deleted or replaced it just now: say which
        _standing(backend, policy_id, version)
        raise
    return WrittenPolicies((), done.epoch)


def keep_policy(
    backend: Backend, policy_id: str, by: str, version: int | None = None, allow: Authorize = allow_all
) -> WrittenPolicies:
    """Delete a dynamic policy, and keep what its actor has set in force under a new, static policy.

    The new policy is in the result; there is none when nothing is in force.

    :raises NotFound: when there is none of this id
    :raises CallerError: when it is static, so that it would only change its name
    :raises PreconditionFailed: when it is not at ``version``
    """

    def change() -> WrittenPolicies:
        old = _standing(backend, policy_id, version)
        allow([old.plan])
        if not old.policy.dynamic:
            raise CallerError(f"policy `{policy_id}` is static: there is nothing to keep of it but itself")
        # the version comes before what it guards: an actor that fires in between makes us try again
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
    """Forget a node that was removed; a live one reports itself again.

    :raises NotFound: when it never reported
    """
    if not backend.store.forget_node(node):
        raise NotFound(f"there is no node `{node}`")


def adopt_history(backend: Backend, by: str) -> Head:
    """Tell all agents to take the current history as it is, even if there is nothing in it."""
    return backend.store.adopt(by)
