"""Undoing the last change of one policy: it becomes what the undo log says that it was, and nothing else does.

A policy that was deleted comes back under its id and with its age, one that was created goes.  Its sentence is compiled
anew: what it needs may be gone by now, or another policy may stand in its way.  Undoing is a change like any other, so
doing it twice brings back what it undid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.configuration.configuration import POLICY, Configuration, Transformation
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.services import KEPT, Authorize, allow_all
from sluice_core.errors import NotFound
from sluice_core.messages.policies import Policy
from sluice_core.store.change_stream import replaced_before
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import Plan

#: Entries of the undo log that are looked at for a policy's last change, and at once.
_LOOKED_AT: Final = 2000
_STEP: Final = 200


def policy_before_last_change(backend: Backend, policy_id: str, allow: Authorize = allow_all) -> Transformation:
    """The present configuration, with one policy as it stood before its last change.

    :param allow: called with the plans that it has and had

    :raises NotFound: when no change of it is known
    :raises PolicyErrors: when its sentence would not be accepted any more
    """

    def wanted(now: Configuration) -> Configuration:
        before = _before(backend, policy_id)
        policies = dict(now.policies)
        present = policies.pop(policy_id, None)
        allow([Plan.from_data(one.plan) for one in (present, before) if one is not None])
        if before is not None:
            policies[policy_id] = _compiled(backend, before)
        return replace(now, policies=policies)

    return wanted


def _before(backend: Backend, policy_id: str) -> Policy | None:
    """What the last change of a policy replaced; None when that created it."""
    name, place = f"{POLICY}/{policy_id}", ""
    for _ in range(_LOOKED_AT // _STEP):
        found = backend.store.run(replaced_before(backend.store.keys, place, _STEP))
        for _entry, documents in found:
            if name in documents:
                raw = documents[name]
                return Policy.decode(raw) if raw else None
        if len(found) < _STEP:
            break
        place = found[-1][0]
    raise NotFound(f"no change of a policy `{policy_id}` is known that could be undone")


def _compiled(backend: Backend, policy: Policy) -> Policy:
    """``policy`` as its sentence is understood now."""
    if KEPT in policy.plan:  # what an actor left behind has no sentence that says it
        return policy
    contents = backend.policy_cache.contents()
    others = [one for one in contents.ordered if one.policy.id != policy.id]
    plain = compile_text(policy.text, backend.vocabulary(contents), [one.existing for one in others], kept=True)
    (one,) = check_bandwidth(backend, policy.text, plain, others)
    return replace(policy, text=one.text, plan=one.plan.to_data(), dynamic=one.plan.dynamic)
