"""``PUT /policies/{id}``: a new text under the same id, or the same policy disabled or enabled.

One atomic change removes all former assignments of the policy and puts its new ones.  The commit script refuses
concurrent decisions of its actor for the old document.  The actor then starts again; only its list of firings is kept.
A disabled policy has no assignments and no actor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.errors import check_version
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.selectors import find_cached
from sluice_controller.policies.services import Authorize, WrittenPolicies, allow_all, assignments_in_force
from sluice_controller.validation.bodies import Body, policy_text
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Firing, PolicyState
from sluice_core.store.records import Committed, Draft
from sluice_dsl.compile import Compiled, compile_text


@dataclass(frozen=True, slots=True)
class PolicyUpdate:
    """The changes of a policy; None leaves a field as it is."""

    text: str | None = None
    enabled: bool | None = None

    @classmethod
    def read(cls, data: Any, limit: int) -> PolicyUpdate:
        """Read the changes in ``data``, a body.

        :raises CallerError: when it has no field, or an unknown one
        """
        body = Body(data, "policy", "enabled")
        if not data:
            raise CallerError("the body is empty, expected `policy` or `enabled`")
        enabled = data.get("enabled")
        if body.has("enabled") and not isinstance(enabled, bool):
            raise CallerError("`enabled` is no boolean, expected true or false")
        text = policy_text({"policy": data["policy"]}, limit) if body.has("policy") else None
        return cls(text, enabled)


def apply_update(
    backend: Backend, contents: CacheContents, old: CachedPolicy, revision: PolicyUpdate
) -> tuple[CachedPolicy, tuple[Compiled, ...]]:
    """``old``, a policy of ``contents``, changed by ``revision``, and its compiled text; id and age stay.

    :raises PolicyErrors: all errors in the text
    :raises CallerError: when it is not exactly one sentence
    """
    enabled = old.policy.enabled if revision.enabled is None else revision.enabled
    if revision.text is None:
        return replace(old, policy=replace(old.policy, enabled=enabled)), ()
    others = [one for one in contents.ordered if one.policy.id != old.policy.id]
    kept = revision.text in (old.policy.source, old.policy.text)
    plain = compile_text(revision.text, backend.vocabulary(contents), [one.existing for one in others], kept)
    compiled = check_bandwidth(backend, revision.text, plain, others)
    if len(compiled) != 1:
        raise CallerError(f"`policy` has {len(compiled)} sentences, expected one: a policy is one sentence")
    (sentence,) = compiled
    same = sentence.text == old.policy.text and sentence.plan == old.plan
    data = old.policy.plan if same else sentence.plan.to_data()
    policy = replace(
        old.policy,
        source=sentence.source,
        text=sentence.text,
        plan=data,
        dynamic=sentence.plan.dynamic,
        enabled=enabled,
    )
    return replace(old, policy=policy, plan=sentence.plan), compiled


def update_policy(
    backend: Backend,
    policy_id: str,
    by: str,
    revision: PolicyUpdate,
    version: int | None = None,
    allow: Authorize = allow_all,
) -> WrittenPolicies:
    """Change a policy; a change without an effect writes nothing.

    :raises NotFound: when there is none of this id
    :raises PolicyErrors: all errors in the text
    :raises PreconditionFailed: when it is not at ``version``
    """

    def change() -> WrittenPolicies:
        contents = backend.policy_cache.contents()
        old = find_cached(contents, policy_id)
        allow([old.plan])
        check_version(f"policy `{policy_id}`", old.version, version)
        new, compiled = apply_update(backend, contents, old, revision)
        allow([new.plan])
        warnings = tuple(warning for one in compiled for warning in one.warnings)
        if new.policy == old.policy:
            return WrittenPolicies((old,), contents.epochs.get(policy_id, 0), (warnings,))
        done = _commit(backend, old, new, by, reference_guards.referenced_versions(backend, contents, compiled))
        return WrittenPolicies((replace(new, version=done.version),), done.epoch, (warnings,))

    return reference_guards.retry_conflicts(change, f"policy `{policy_id}` changes faster than it can be replaced")


def _commit(backend: Backend, old: CachedPolicy, new: CachedPolicy, by: str, guards: Mapping[str, int]) -> Committed:
    name = old.policy.id
    # Versions are read before the documents that they guard: if an actor fires in between, the change is tried again.
    expect = {**guards, f"policy/{name}": old.version, f"state/{name}": backend.store.version(f"state/{name}")}
    draft = Draft(
        by,
        puts=assignments_in_force(new.policy, new.plan),
        policies=(new.policy,),
        policy_drops=(name,),
        states=_begun_anew(backend, name),
        expect=expect,
    )
    return backend.store.commit(draft)


def _begun_anew(backend: Backend, policy_id: str) -> tuple[PolicyState, ...]:
    """The rest of an actor's state: its log, with an entry that this change took its actions back."""
    state = backend.store.state(policy_id)
    if state is None:
        return ()
    now = backend.now()
    ended = (Firing(now, "taken_back", "", int(now)),) if state.status == "active" else ()
    firings = (*state.firings, *ended)
    return (PolicyState(policy_id, firings=firings),) if firings else ()
