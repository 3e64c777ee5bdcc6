"""Makes the actor of a policy as the store knows it; a policy that cannot run gets the state `failed`."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field

from sluice_actors.policies.actor import Context, PolicyActor
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.policies.family_actor import FamilyActor, family
from sluice_actors.policies.loader import StoredPolicy
from sluice_actors.policies.plan_cache import PlanCache
from sluice_actors.policies.single_actor import SingleActor
from sluice_core.errors import Conflict, DecodeError
from sluice_core.messages.policies import PolicyState
from sluice_core.store.records import Draft
from sluice_dsl.plan import Plan

log = logging.getLogger(__name__)


def policy_actor(
    context: Context, policy: str, plan: Plan, created: int, version: int, state: PolicyState | None = None
) -> PolicyActor:
    """The actor of ``plan``.

    :raises DecodeError: when ``state`` does not fit it
    """
    kind = FamilyActor if family(plan.target, plan.granularity) else SingleActor
    return kind(context, policy, plan, created, version, state)


@dataclass(slots=True)
class ActorFactory:
    """Makes the actors of one host, all of them in one ``context``; ``writer`` is its listener."""

    context: Context
    writer: DecisionWriter
    _plans: PlanCache = field(default_factory=PlanCache)

    async def create(self, stored: StoredPolicy) -> PolicyActor | None:
        """The actor of a policy, not begun; None when none can run, which is written down then.

        :raises PeerError: when Redis is away
        """
        try:
            return self._make(stored)
        except DecodeError as error:
            await self._refuse(stored, error)
            return None

    def _make(self, stored: StoredPolicy) -> PolicyActor:
        policy = stored.policy
        given = (self.context, policy.id, self._plans.decode(policy.plan), policy.created, stored.version)
        try:
            return policy_actor(*given, stored.state)
        except DecodeError as error:
            log.error("policy `%s` begins anew, its state cannot be used: %s", policy.id, error)
            return policy_actor(*given)

    async def _refuse(self, stored: StoredPolicy, error: DecodeError) -> None:
        """Say that no actor can run for a policy; what is in force for it stays."""
        name, state = stored.policy.id, stored.state
        log.error("policy `%s` cannot run: %s", name, error)
        members, firings = (state.members, state.firings) if state is not None else ({}, ())
        failed = PolicyState(name, "failed", members, firings, str(error))
        fence = self.writer.ownership.fence((name,))
        draft = Draft(self.writer.by, states=(failed,), expect={f"policy/{name}": stored.version}, fence=fence)
        with contextlib.suppress(Conflict):  # replaced meanwhile: the stream says so next
            await self.writer.store.commit(draft)
