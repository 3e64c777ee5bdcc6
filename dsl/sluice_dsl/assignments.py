"""Assignments of a plan, which agents and the data plane read."""

from __future__ import annotations

from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Predicate
from sluice_dsl.plan import Plan, residual


def assignment_for(
    policy_id: str, plan: Plan, action_index: int, created: int, when: Predicate, member: str = ""
) -> Assignment:
    """The assignment of action ``action_index`` (from 0) in force for requests that satisfy ``when``.

    ``member`` is the path of the member of a group or ALL that it was set for, else empty;
    ``created`` is the policy's age in unix milliseconds.
    """
    action = plan.actions[action_index]
    suffix = f"@{member}" if member else ""
    return Assignment(
        id=f"{policy_id}.{action_index}{suffix}",
        policy=policy_id,
        kind=action.kind,
        verb=action.verb,
        keyword=action.keyword,
        target=plan.target,
        member=member,
        params=action.params,
        place=action.place,
        stage=action.stage,
        order=action_index,
        protective=action.protective,
        created=created,
        when=when,
        existing=action.existing,
        about=action.about,
    )


def static_assignments(policy_id: str, plan: Plan, created: int) -> tuple[Assignment, ...]:
    """All assignments of a plan that needs no actor; none when its condition can never hold.

    :raises ValueError: for a dynamic plan, whose assignments only an actor can know
    """
    if plan.dynamic:
        raise ValueError(f"policy `{policy_id}` watches {', '.join(plan.metrics)}, an actor sets its assignments")
    when = residual(plan.condition, {})
    if when is False:
        return ()
    return tuple(assignment_for(policy_id, plan, index, created, when) for index in range(len(plan.actions)))
