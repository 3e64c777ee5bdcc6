"""Runs the actors of the policies that belong to this host.

Policies are read from the store, all of them or one at a time.  An actor whose policy has the same version keeps
running, and the store is corrected where it differs from the actor.  Policies that come from another host of the team
start with the windows of the last seconds (:class:`Replay`); policies of lost slots stop at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sluice_actors.metrics.aggregator import Aggregator
from sluice_actors.metrics.aggregator_pool import KEPT, Backlog, routing_name
from sluice_actors.metrics.subscription import Columns, MetricSubscription
from sluice_actors.metrics.windows import ClosedWindow
from sluice_actors.policies.actor import PolicyActor
from sluice_actors.policies.actor_factory import ActorFactory, StoredPolicy, read_names, read_policies, steps
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.runtime.actor import Delivery
from sluice_actors.runtime.system import ActorSystem
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import Policy
from sluice_core.store.fencing import slot_of

log = logging.getLogger(__name__)


class Replay:
    """The windows of the last seconds once more, from the backlog, for actors that come from another host.

    Their former host has ended, or released them a moment ago; its unwritten decisions are lost.  So the actors get
    every window again since the last one in their written state: one that was true in the meantime still fires, and one
    that fired already is known to their machines and does nothing.

    Batches keep arriving while the first ones are decoded: :meth:`prepare` decodes most, :meth:`deliveries` the rest.
    """

    def __init__(self, backlog: Backlog, metrics: Iterable[str], clock: Callable[[], float]) -> None:
        self._backlog = backlog
        self._since = clock() - KEPT
        # An aggregator refuses windows before its start, hence a time before all of them.
        self._merging = {metric: Aggregator(metric, self._since) for metric in metrics}
        self._read = dict.fromkeys(self._merging, self._since)
        self._closed: dict[str, dict[int, ClosedWindow]] = {}

    async def prepare(self) -> None:
        """Decode the batches that have arrived; other tasks run after each batch."""
        for metric in self._merging:
            for _ in self._absorb(metric):
                await asyncio.sleep(0)

    def deliveries(self, actors: Sequence[PolicyActor]) -> Iterator[Delivery]:
        """Deliver to ``actors``, which have started, each window from the last they know to the last delivered one."""
        for metric, merging in self._merging.items():
            for _ in self._absorb(metric):
                pass
            self._closed[metric] = {one.window: one for one in merging.close_due(math.inf)}
        for actor in actors:
            subscription = actor.subscription
            if subscription is not None:
                for window, period, columns in self._windows(subscription, max(actor.seen, actor.created // 1000)):
                    yield actor, subscription.message_for(actor, window, period, columns)

    def _absorb(self, metric: str) -> Iterator[MetricBatch]:
        for came, batch in self._backlog.decoded(routing_name(metric), self._read[metric]):
            self._read[metric] = came
            self._merging[metric].add(batch, came)
            yield batch

    def _windows(self, subscription: MetricSubscription, first: int) -> Iterator[tuple[int, float, Columns]]:
        through = subscription.delivered_through
        closed = [self._closed.get(metric, {}) for metric in subscription.metrics]
        for window in sorted(set(closed[0]).intersection(*closed[1:])):
            if first <= window <= through:
                found = [one[window] for one in closed]
                yield window, min(one.period for one in found), subscription.columns_of(found)


@dataclass(slots=True)
class PolicyRunner:
    """Starts and stops policy actors.  Only one task at a time may call its coroutines."""

    system: ActorSystem
    writer: DecisionWriter
    factory: ActorFactory
    backlog: Backlog
    actors: dict[str, PolicyActor] = field(default_factory=dict)  #: policy id → its actor
    _to_reread: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.writer.on_lost = self._document_changed

    async def read_all(self) -> None:
        """Run exactly the policies in the store that this host owns now.

        :raises PeerError: when Redis is unreachable
        """
        present: set[str] = set()
        names = await read_names(self.writer.store, self.writer.ownership.owns_slot)
        async for stored in read_policies(self.writer.store, names, names.policies):
            present.update(one.policy.id for one in stored if self._runs_here(one.policy))
            self._spawn(await self._reconcile_each(stored))
        for name in self.actors.keys() - present:
            self._stop(name)

    async def read(self, name: str) -> None:
        """Run the policy ``name`` as it is in the store now, or stop it.

        :raises PeerError: when Redis is unreachable
        """
        record = await self.writer.store.policy(name) if self.writer.ownership.owns(name) else None
        if record is None or not self._runs_here(record[0]):
            self._stop(name)
            return
        policy, version = record
        actor = self.actors.get(name)
        if actor is None or actor.version != version:
            state = await self.writer.store.state(name)
            stored = [one for one in await self.writer.store.assignments() if one.policy == name] if state else []
            self._spawn(await self._reconcile(StoredPolicy(policy, version, state, stored)))

    async def reread_lost(self) -> None:
        """Read the policies again whose documents no longer have the version of their actors.

        :raises PeerError: when Redis is unreachable
        """
        for policy in list(self._to_reread):
            await self.read(policy)
            self._to_reread.discard(policy)

    def stop_slots(self, slots: Collection[str]) -> None:
        """Stop the actors of the policies in ``slots``."""
        for name in [name for name in self.actors if slot_of(name) in slots]:
            self._stop(name)

    async def take_over(self, slots: Collection[str], interrupted: Callable[[], bool]) -> set[str]:
        """Read and start the policies in ``slots``, with the windows that no host may have evaluated.

        All actors start at once, right before they get the past windows; a window that closes meanwhile follows after
        these.

        :param interrupted: returns True when the team has changed; the rest is then left for the next call
        :return: the slots that were read
        :raises PeerError: when Redis is unreachable
        """
        clock = self.factory.context.now
        began = clock()
        made: list[PolicyActor] = []
        read: set[str] = set()
        try:
            names = await read_names(self.writer.store, slots.__contains__)
            for part in steps(slots):
                async for stored in read_policies(self.writer.store, names, part):
                    made += await self._reconcile_each(stored)
                read |= part
                if interrupted():
                    break
            replay = Replay(self.backlog, {metric for actor in made for metric in actor.plan.metrics}, clock)
            await replay.prepare()
        except PeerError:
            for actor in made:
                self._stop(actor.policy)  # it is made anew when Redis is back
            raise
        self.system.send_each(replay.deliveries(self._spawn(made)))
        log.info("took over %d policies in %.2f s", len(made), clock() - began)
        return read

    def _runs_here(self, policy: Policy) -> bool:
        return policy.dynamic and policy.enabled and self.writer.ownership.owns(policy.id)

    async def _reconcile_each(self, stored: Sequence[StoredPolicy]) -> list[PolicyActor]:
        """Make or keep the actor of each policy that runs here; return the new ones, for :meth:`_spawn`."""
        made = []
        for one in stored:
            if self._runs_here(one.policy):
                made += await self._reconcile(one)
        await asyncio.sleep(0)
        return made

    async def _reconcile(self, stored: StoredPolicy) -> list[PolicyActor]:
        """Make or keep the actor of a policy in the store; return the actor if it is new."""
        name = stored.policy.id
        actor = self.actors.get(name)
        if actor is not None and actor.version == stored.version:
            self.writer.reconcile(actor, stored.assignments)
            return []
        self._stop(name)
        actor = await self.factory.create(stored)
        if actor is None:
            return []
        self.actors[name] = actor
        self.writer.track(actor, stored.assignments)
        return [actor]

    def _spawn(self, made: Sequence[PolicyActor]) -> list[PolicyActor]:
        """Start those that are still needed."""
        wanted = [actor for actor in made if self.actors.get(actor.policy) is actor]
        for actor in wanted:
            self.system.spawn(actor)
        return wanted

    def _stop(self, policy: str) -> None:
        actor = self.actors.pop(policy, None)
        if actor is not None:
            self.writer.forget(policy)
            self.system.stop(actor)

    def _document_changed(self, actor: PolicyActor) -> None:
        """Handle an actor whose policy's document has another version; the change in the stream may be long past."""
        if self.actors.get(actor.policy) is actor:
            self._stop(actor.policy)
            self._to_reread.add(actor.policy)
