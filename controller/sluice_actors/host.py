"""The actor host: one process that runs policy actors and the aggregators they need.

Tasks beside the actor system:

* *follow* reads policies, states and assignments once, then the change stream, and spawns and stops
  actors.  A gap in the stream, another history or a smaller epoch means reading everything again;
  actors whose policy is the same version go on untouched, and what the store holds is reconciled with
  what they want.
* *write* (``sluice_actors.writer``) commits what actors decide.
* *show* publishes the observed values of the policies that somebody looks at, and the host's report.
* *own* and *team*, with other hosts: what became ours is read and begins with the windows of the last seconds
  (``sluice_actors.replay``), what ceased to be ours stops at once.

Redis or RabbitMQ away: the tasks try again with growing pauses, the actors go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from sluice_actors.activations import Activations
from sluice_actors.backlog import Backlog
from sluice_actors.feeds import Hub
from sluice_actors.groups import Groups
from sluice_actors.ownership import Ownership, SingleHost
from sluice_actors.plans import Plans
from sluice_actors.policy import Context, PolicyActor, policy_actor
from sluice_actors.program import Programs
from sluice_actors.reading import Found, read_names, read_policies
from sluice_actors.replay import Replay
from sluice_actors.runtime import ActorSystem
from sluice_actors.tasks import end_tasks, keep_on
from sluice_actors.teamwork import Teamwork
from sluice_actors.writer import Writer
from sluice_core.activation import Gate
from sluice_core.bus import Consumer
from sluice_core.errors import Conflict, DecodeError, PeerError
from sluice_core.fencing import SLOTS, slot_of
from sluice_core.keys import metric_routing_key
from sluice_core.messages import Assignment, Change, Policy, PolicyState
from sluice_core.operations import Draft, Gap, Head
from sluice_core.store import AsyncStore

log = logging.getLogger(__name__)

_BLOCK_MS: Final = 1000
#: How much is read before a host looks whether it is still to have the rest.
_SLOTS_PER_STEP: Final = 8
_REPORT_INTERVAL: Final = 5.0
_LAST_WORDS: Final = 2.0
#: What is ours is compared with what Redis says so often, should a message about it get lost.
_LOOK_AGAIN: Final = 2.0


class Host:
    """Runs the actors of the policies in one store.

    ``settings`` are the values of ``sluice_actors.settings.OPTIONS``.  With ``team`` it shares its work with all
    hosts of the same store, otherwise it does what ``ownership`` says, which is everything.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        ownership: Ownership | None = None,
        clock: Callable[[], float] = time.time,
        team: bool = False,
    ) -> None:
        self.name: str = settings["host"]
        self.store = AsyncStore(settings["redis_url"], settings["redis_prefix"])
        self.system = ActorSystem()
        self.teamwork = Teamwork(settings, clock) if team else None
        backlog = None if self.teamwork is None else self.teamwork.backlog
        self.hub = Hub(self.system, settings["close_delay_ms"] / 1000, self._metric_used, clock, backlog)
        self.consumer = Consumer(settings["amqp_url"], self.hub.receive)
        fences = None
        if self.teamwork is not None:
            ownership = fences = self.teamwork.team
            self.teamwork.attach(self.hub, self.consumer)
        self.activations = Activations(Gate.from_option(settings["activation_hosts"]))
        self.writer = Writer(
            self.store,
            f"actors@{self.name}",
            self._lost,
            settings["commit_size"],
            fences,
            self.activations.committed,
        )
        #: Set once all that is ours was read for the first time.
        self.synced = asyncio.Event()
        self._ownership = ownership if ownership is not None else SingleHost()
        self._groups = Groups()
        self._context = Context(
            self.writer,
            self.hub.feed,
            self._groups,
            Programs(),
            settings["transient_windows"],
            clock,
        )
        self._plans = Plans()
        self._actors: dict[str, PolicyActor] = {}
        self._head = Head()
        self._stale = True
        self._reread: set[str] = set()
        self._unread: set[str] = set()
        self._moved = asyncio.Event()
        # Held by whichever task changes what runs.
        self._turn = asyncio.Lock()
        self._clock = clock
        self._started = 0.0
        self._reported = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def actors(self) -> Mapping[str, PolicyActor]:
        """Policy id → its actor."""
        return self._actors

    def start(self) -> None:
        """Begin to work, on the running loop."""
        self._started = self._clock()
        self._ownership.on_change(self._resync_soon if self.teamwork is None else self._moved.set)
        self.consumer.start()
        if self.teamwork is not None:
            self.teamwork.start()
            self._spawn_task(keep_on("own", self._own))
            self._spawn_task(keep_on("team", self.teamwork.step))
        self._spawn_task(keep_on("follow", self._follow))
        self._spawn_task(self.writer.run())
        self._spawn_task(self.activations.run())
        self._spawn_task(keep_on("show", self._show))

    async def failed(self) -> None:
        """Return never; raise what ended one of the tasks, which is a bug of ours."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Write down what is decided (for at most 2 s) and end."""
        await end_tasks(self._tasks)
        await self.consumer.close()
        self.hub.close()
        await self.system.idle()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self.writer.flush()
        except (PeerError, TimeoutError) as error:
            log.warning("%d policies were not written at the end: %s", self.writer.pending, error)
        if self.teamwork is not None:
            await self.teamwork.close()
        await self.system.close()
        await self.store.close()

    # -- follow

    async def _follow(self) -> None:
        async with self._turn:
            await self._refresh()
            for policy in list(self._reread):
                await self._read_policy(policy)
                self._reread.discard(policy)
        changes = await self.store.changes_after(self._head.epoch, _BLOCK_MS)
        async with self._turn:
            await self._take(changes)

    async def _refresh(self) -> None:
        """Read everything, if that is needed."""
        if self._stale:
            self._stale = False
            try:
                await self._read_everything()
            except PeerError:
                self._stale = True
                raise

    async def _take(self, changes: list[Change] | Gap) -> None:
        if isinstance(changes, Gap):
            log.warning("reading everything again: %s", changes.reason)
            self._stale = True
            return
        for change in changes:
            if change.history != self._head.history:
                self._stale = True
                return
            await self._apply(change)
            self._head = Head(change.history, change.epoch)
        if not changes:
            head = await self.store.head()
            if head.history != self._head.history or head.epoch < self._head.epoch:
                log.warning("history `%s` at %d after `%s` at %d: reading everything again",
                            head.history, head.epoch, self._head.history, self._head.epoch)  # fmt: skip
                self._stale = True

    async def _read_everything(self) -> None:
        self._head = await self.store.head()
        self.writer.history = self._head.history
        entries = (await self.store.entries()).values()
        self._groups.replace(entries)
        self.activations.replace(entries)
        there: set[str] = set()
        names = await read_names(self.store, self._ownership.owns_slot)
        async for found in read_policies(self.store, names, names.policies):
            there.update(one.policy.id for one in found if self._ours(one.policy))
            await self._settle_all(found)
        for name in self._actors.keys() - there:
            self._stop(name)
        if self.teamwork is None:
            self.synced.set()

    async def _settle_all(self, found: list[Found]) -> list[PolicyActor]:
        """Have the right actor for each; those that are new."""
        made = []
        for one in found:
            if self._ours(one.policy):
                before = self._actors.get(one.policy.id)
                await self._settle(one.policy, one.version, one.state, list(one.stored))
                actor = self._actors.get(one.policy.id)
                if actor is not None and actor is not before:
                    made.append(actor)
        await asyncio.sleep(0)
        return made

    async def _apply(self, change: Change) -> None:
        self._groups.apply(change)
        self.activations.apply(change)
        for name in change.policies:
            await self._read_policy(name)

    async def _read_policy(self, name: str) -> None:
        found = await self.store.policy(name) if self._ownership.owns(name) else None
        if found is None or not self._ours(found[0]):
            self._stop(name)
            return
        policy, version = found
        actor = self._actors.get(name)
        if actor is None or actor.version != version:
            state = await self.store.state(name)
            stored = [one for one in await self.store.assignments() if one.policy == name] if state else []
            await self._settle(policy, version, state, stored)

    async def _own(self) -> None:
        """Act for what is ours and for nothing else."""
        assert self.teamwork is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await self._moved.wait()
        async with self._turn:
            self._moved.clear()
            try:
                await self._refresh()
                moved = await self.teamwork.team.settle()
                for name in [one for one in self._actors if slot_of(one) in moved.lost]:
                    self._stop(name)
                self._unread = (self._unread - moved.lost) | moved.gained
                if self._unread:
                    await self._take_over(self.teamwork.backlog)
            except PeerError:
                self._moved.set()
                raise
        if self.teamwork.team.held and not self._unread:
            self.synced.set()
        if moved.gained or moved.lost:
            self._reported = 0.0  # and say so at once

    async def _take_over(self, backlog: Backlog) -> None:
        """Read and begin what became ours; it sees the windows again that nobody may have looked at.

        When the team changes meanwhile, the rest is left for the next turn: it may be somebody else's by then.
        """
        began = self._clock()
        made: list[PolicyActor] = []
        names = await read_names(self.store, self._unread.__contains__)
        for at in range(0, SLOTS, _SLOTS_PER_STEP):
            slots = self._unread.intersection(map(str, range(at, at + _SLOTS_PER_STEP)))
            async for found in read_policies(self.store, names, slots):
                made += await self._settle_all(found)
            self._unread -= slots
            if self._moved.is_set():
                break
        replay = Replay(backlog, {metric for actor in made for metric in actor.plan.metrics}, self._clock)
        await replay.prepare()
        self.system.tell_each(replay.deliveries(made))
        log.info("took over %d policies in %.2f s", len(made), self._clock() - began)

    def _ours(self, policy: Policy) -> bool:
        return policy.dynamic and policy.enabled and self._ownership.owns(policy.id)

    async def _settle(self, policy: Policy, version: int, state: PolicyState | None, stored: list[Assignment]) -> None:
        """Have the right actor for ``policy``, which the store knows in ``version``."""
        actor = self._actors.get(policy.id)
        if actor is not None and actor.version == version:
            self.writer.reconcile(actor, stored)
            return
        self._stop(policy.id)
        try:
            actor = self._make(policy, version, state)
        except DecodeError as error:
            await self._refuse(policy, version, state, error)
            return
        self._actors[policy.id] = actor
        self.writer.begin(actor, stored)
        self.system.spawn(actor)

    def _make(self, policy: Policy, version: int, state: PolicyState | None) -> PolicyActor:
        plan = self._plans.decode(policy.plan)
        try:
            return policy_actor(self._context, policy.id, plan, policy.created, version, state)
        except DecodeError as error:
            log.error("policy `%s` begins anew, its state cannot be used: %s", policy.id, error)
            return policy_actor(self._context, policy.id, plan, policy.created, version)

    async def _refuse(self, policy: Policy, version: int, state: PolicyState | None, error: DecodeError) -> None:
        """Say that no actor can run for ``policy``; what is in force for it stays."""
        log.error("policy `%s` cannot run: %s", policy.id, error)
        members, firings = (state.members, state.firings) if state is not None else ({}, ())
        failed = PolicyState(policy.id, "failed", members, firings, str(error))
        fence = self._ownership.fence((policy.id,))
        draft = Draft(self.writer.by, states=(failed,), expect={f"policy/{policy.id}": version}, fence=fence)
        with contextlib.suppress(Conflict):  # replaced meanwhile: the stream says so next
            await self.store.commit(draft)

    def _stop(self, policy: str) -> None:
        actor = self._actors.pop(policy, None)
        if actor is not None:
            self.writer.forget(policy)
            self.system.stop(actor)

    def _lost(self, actor: PolicyActor) -> None:
        """The policy's document changed under the actor; what the stream says next may be long past it."""
        if self._actors.get(actor.policy) is actor:
            self._stop(actor.policy)
            self._reread.add(actor.policy)

    def _resync_soon(self) -> None:
        self._stale = True

    # -- metrics

    def _metric_used(self, metric: str, used: bool) -> None:
        if self.teamwork is not None:
            self.teamwork.used(metric, used)
            return
        pattern = metric_routing_key(metric, "*")
        if used:
            self.consumer.bind(pattern)
        else:
            self.consumer.unbind(pattern)

    # -- show

    async def _show(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPORT_INTERVAL):
                await self.hub.delivered.wait()
        await self.system.idle()
        self.hub.delivered.clear()
        now = self._clock()
        shown = {}
        for name in await self.store.watched(now):
            actor = self._actors.get(name)
            observed = None if actor is None else self.hub.observed(actor)
            if observed is not None:
                shown[name] = observed
        if shown:
            await self.store.observe(shown)
        if now - self._reported >= _REPORT_INTERVAL or now < self._reported:
            await self.store.host_report(self.name, self.report())
            self._reported = now

    def report(self) -> dict[str, Any]:
        """What the host says of itself."""
        return {
            "at": self._clock(),
            "started": self._started,
            "actors": len(self._actors),
            "suspended": self.system.suspended,
            "failures": self.system.counts.failures,
            "restarts": self.system.counts.restarts,
            "dropped": self.system.counts.dropped,
            "pending": self.writer.pending,
            "history": self._head.history,
            "epoch": self._head.epoch,
            "bus": self.consumer.connected.is_set(),
            "undecodable": self.hub.undecodable,
            "activations": self.activations.report(),
            "metrics": self.hub.report(),
            **({} if self.teamwork is None else self.teamwork.report()),
        }

    # -- tasks

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))
