"""What ``GET /effective`` answers, as plain data."""

from __future__ import annotations

from typing import Any, Final

from sluice_controller.api.render.policies import condition_text
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code.controllers import controller_of
from sluice_controller.policies.effective import (
    CONDITION,
    DELETED,
    DISABLED,
    NARROWER,
    NEWER,
    NO_VALUE,
    UNKNOWN,
    WAITING,
    Effective,
    Overridden,
    Verdict,
    decided_by,
)
from sluice_core.messages.policies import Assignment

_WORDS: Final = {
    DISABLED: "the policy is disabled",
    WAITING: "its actor has set nothing here, and has not said yet what it observes",
    NO_VALUE: "its actor has set nothing here: a metric that it waits for has no value",
    CONDITION: "its condition does not hold",
    UNKNOWN: "its condition asks for what is not known of this request",
    NEWER: "a newer policy sets the same keyword for the same target",
    DELETED: "a DELETE names it",
    NARROWER: "a policy of a narrower scope decides this kind",
}


def effective_data(found: Effective, contents: CacheContents, most: int) -> dict[str, Any]:
    """The whole answer; at most ``most`` overridden actions of each kind."""
    facts = found.facts
    return {
        "target": {
            "account": found.place.account,
            "container": found.place.container,
            "object": found.place.object,
        },
        "request": {
            "method": facts.method,
            "size": facts.size,
            "type": facts.content_type,
            "tags": None if facts.tags is None else sorted(facts.tags),
        },
        "epoch": found.epoch,
        "kinds": [_verdict(one, contents, most) for one in found.verdicts],
    }


def _verdict(one: Verdict, contents: CacheContents, most: int) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "decided_by": decided_by(one.pipeline, one.deletes),
        "pipeline": [step_data(step) for step in one.pipeline],
        "deletes": [step_data(step) for step in one.deletes],
        "overridden": [_overridden(each, contents) for each in one.overridden[:most]],
        "more": max(0, len(one.overridden) - most),
    }


def step_data(one: Assignment) -> dict[str, Any]:
    """An assignment."""
    return {
        "policy": one.policy,
        "controller": controller_of(one.policy),
        "assignment": one.id,
        "verb": one.verb,
        "keyword": one.keyword,
        "params": dict(one.params),
        "place": one.place,
        "stage": one.stage,
        "protective": one.protective,
        "target": one.target.to_data(),
        "member": one.member,
    }


def _overridden(one: Overridden, contents: CacheContents) -> dict[str, Any]:
    cached = contents.policies.get(one.policy)
    condition = condition_text(cached.policy.text) if cached else ""
    words = _WORDS[one.reason]
    return {
        "policy": one.policy,
        "controller": controller_of(one.policy),
        "assignment": one.assignment.id if one.assignment else "",
        "keyword": one.keyword,
        "reason": one.reason,
        "by": list(one.by),
        "message": f"{words}: `{condition}`" if condition and one.reason not in _NOT_ITS_OWN else words,
        "observed": dict(one.observed),
    }


#: Reasons that have nothing to do with the policy's condition.
_NOT_ITS_OWN: Final = (DISABLED, NEWER, DELETED, NARROWER)
