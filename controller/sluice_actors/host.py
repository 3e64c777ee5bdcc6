"""The actor host: one process that runs policy actors and the aggregators they need.

Tasks beside the actor system:

* *follow* reads policies, states and assignments once, then the change stream, and spawns and stops
  actors.  A gap in the stream, another history or a smaller epoch means reading everything again;
  actors whose policy is the same version go on untouched, and what the store holds is reconciled with
  what they want.
* *write* (``sluice_actors.policies.decision_writer``) commits what actors decide.
* *divide*, *objectives*, *picture* divide bandwidth (``sluice_actors.bandwidth.service``).
* *controllers* begins and ends global controllers (``sluice_actors.controllers.manager``).
* *show* publishes the observed values of the policies that somebody looks at, and the host's report.
* *own* and *team*, with other hosts: what became ours is read and begins with the windows of the last seconds
  (``sluice_actors.policies.replay``), what ceased to be ours stops at once.

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
from sluice_actors.bandwidth.service import BandwidthService
from sluice_actors.change_observer import ACTORS, ChangeObserver
from sluice_actors.controllers.manager import ControllerManager
from sluice_actors.hosts.change_stream import ChangeStream
from sluice_actors.hosts.cluster_services import ClusterServices
from sluice_actors.metrics.backlog import Backlog
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.actor import Context, PolicyActor
from sluice_actors.policies.actor_factory import ActorFactory
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.policies.loader import StoredPolicy, read_names, read_policies, steps
from sluice_actors.policies.replay import Replay
from sluice_actors.runtime.ownership import Ownership, SingleHost
from sluice_actors.runtime.system import ActorSystem
from sluice_actors.runtime.tasks import cancel_tasks, repeat_forever
from sluice_actors.status_publisher import StatusPublisher
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Change, Policy
from sluice_core.store.fencing import slot_of
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

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
        self.cluster = ClusterServices(settings, clock) if team else None
        backlog = None if self.cluster is None else self.cluster.backlog
        self.router = MetricRouter(self.system, settings["close_delay_ms"] / 1000, self._metric_used, clock, backlog)
        self.consumer = Consumer(settings["amqp_url"], self.router.aggregators.receive)
        fences = None
        if self.cluster is not None:
            ownership = fences = self.cluster.team
            self.cluster.attach(self.router, self.consumer)
        self.activations = Activations(UrlAllowlist.from_option(settings["activation_hosts"]))
        self.writer = DecisionWriter(
            self.store,
            f"{ACTORS}{self.name}",
            self._lost,
            settings["commit_size"],
            fences,
            self.activations.committed,
        )
        #: Set once all that is ours was read for the first time.
        self.synced = asyncio.Event()
        self._ownership = ownership if ownership is not None else SingleHost()
        self._groups = GroupIndex()
        context = Context(
            self.writer,
            self.router.subscription,
            self._groups,
            ConditionCache(),
            settings["transient_windows"],
            clock,
        )
        self._making = ActorFactory(context, self.store, self.writer, self._ownership)
        self._actors: dict[str, PolicyActor] = {}
        self._stream = ChangeStream(self.store)
        self._stale = True
        self._reread: set[str] = set()
        self._unread: set[str] = set()
        self._moved = asyncio.Event()
        # Held by whichever task changes what runs.
        self._turn = asyncio.Lock()
        self._clock = clock
        self.change_observer = ChangeObserver(self.store, self.activations, self._ownership, clock)
        self.status_publisher = StatusPublisher(
            self.name, self.store, self.system, self.router, self._actors, self.report, clock
        )
        self.controllers = ControllerManager(
            settings, self.store, self.writer, self.router, self._ownership, fences, clock,
            self.activations.committed, self.status_publisher.soon,
        )  # fmt: skip
        self.bandwidth = BandwidthService(settings, self.store, self._ownership, self._groups, clock)
        self._started = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def actors(self) -> Mapping[str, PolicyActor]:
        """Policy id → its actor."""
        return self._actors

    def start(self) -> None:
        """Begin to work, on the running loop."""
        self._started = self._clock()
        self._ownership.on_change(self._resync_soon if self.cluster is None else self._moved.set)
        self.consumer.start()
        self.bandwidth.start(self._spawn_task)
        if self.cluster is not None:
            self.cluster.start()
            self._spawn_task(repeat_forever("own", self._own))
            self._spawn_task(repeat_forever("team", self.cluster.step))
        self._spawn_task(repeat_forever("follow", self._follow))
        self._spawn_task(self.writer.run())
        self._spawn_task(self.activations.run())
        self._spawn_task(repeat_forever("controllers", self.controllers.step))
        self._spawn_task(repeat_forever("show", self.status_publisher.step))

    async def failed(self) -> None:
        """Return never; raise what ended one of the tasks, which is a bug of ours."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Write down what is decided (for at most 2 s) and end."""
        await cancel_tasks(self._tasks)
        await self.controllers.close()
        await self.bandwidth.close()
        await self.consumer.close()
        self.router.aggregators.close()
        await self.system.idle()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self.writer.flush()
        except (PeerError, TimeoutError) as error:
            log.warning("%d policies were not written at the end: %s", self.writer.pending, error)
        if self.cluster is not None:
            await self.cluster.close()
        await self.system.close()
        await self.store.close()

    # -- follow

    async def _follow(self) -> None:
        async with self._turn:
            await self._refresh()
            for policy in list(self._reread):
                await self._read_policy(policy)
                self._reread.discard(policy)
        changes = await self._stream.next()
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

    async def _take(self, changes: list[Change] | None) -> None:
        self._stale = changes is None or self._stale
        for change in changes or ():
            if change.history != self._stream.head.history:
                self._stale = True
                return
            await self._apply(change)
            self._stream.follow(change)

    async def _read_everything(self) -> None:
        self.writer.history = (await self._stream.begin()).history
        entries = (await self.store.entries()).values()
        self._groups.replace(entries)
        self.bandwidth.reread()
        self.activations.replace(entries)
        await self.change_observer.reread(self.writer.history)
        self.controllers.replace((await self.store.uploads()).values())
        there: set[str] = set()
        names = await read_names(self.store, self._ownership.owns_slot)
        async for found in read_policies(self.store, names, names.policies):
            there.update(one.policy.id for one in found if self._ours(one.policy))
            self._begin(await self._settle_all(found))
        for name in self._actors.keys() - there:
            self._stop(name)
        if self.cluster is None:
            self.synced.set()

    async def _settle_all(self, found: list[StoredPolicy]) -> list[PolicyActor]:
        """Have the right actor for each; those that are new, for :meth:`_begin`."""
        made = []
        for one in found:
            if self._ours(one.policy):
                made += await self._settle(one)
        await asyncio.sleep(0)
        return made

    async def _apply(self, change: Change) -> None:
        self._groups.apply(change)
        self.bandwidth.apply(change)
        self.activations.apply(change)
        self.controllers.apply(change)
        await self.change_observer.apply(change)
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
            self._begin(await self._settle(StoredPolicy(policy, version, state, stored)))

    async def _own(self) -> None:
        """Act for what is ours and for nothing else."""
        assert self.cluster is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await self._moved.wait()
        async with self._turn:
            self._moved.clear()
            try:
                await self._refresh()
                moved = await self.cluster.team.settle()
                for name in [one for one in self._actors if slot_of(one) in moved.lost]:
                    self._stop(name)
                self._unread = (self._unread - moved.lost) | moved.gained
                if self._unread:
                    await self._take_over(self.cluster.backlog)
            except PeerError:
                self._moved.set()
                raise
        if self.cluster.team.held and not self._unread:
            self.synced.set()
        if moved.gained or moved.lost:
            self.controllers.look_at_all()
            self.bandwidth.look()
            self.change_observer.gained(moved.gained)
            self.status_publisher.soon()

    async def _take_over(self, backlog: Backlog) -> None:
        """Read and begin what became ours; it sees the windows again that nobody may have looked at.

        When the team changes meanwhile, the rest is left for the next turn: it may be somebody else's by then.
        All begin at once, right before they are told of the past: what is closed meanwhile is told behind that.
        """
        began = self._clock()
        made: list[PolicyActor] = []
        read: set[str] = set()
        try:
            names = await read_names(self.store, self._unread.__contains__)
            for slots in steps(self._unread):
                async for found in read_policies(self.store, names, slots):
                    made += await self._settle_all(found)
                read |= slots
                if self._moved.is_set():
                    break
            replay = Replay(backlog, {metric for actor in made for metric in actor.plan.metrics}, self._clock)
            await replay.prepare()
        except PeerError:
            for actor in made:
                self._stop(actor.policy)  # and made anew when Redis is back
            raise
        self._unread -= read
        self.system.tell_each(replay.deliveries(self._begin(made)))
        log.info("took over %d policies in %.2f s", len(made), self._clock() - began)

    def _begin(self, made: list[PolicyActor]) -> list[PolicyActor]:
        """Start those that are still wanted."""
        made = [actor for actor in made if self._actors.get(actor.policy) is actor]
        for actor in made:
            self.system.spawn(actor)
        return made

    def _ours(self, policy: Policy) -> bool:
        return policy.dynamic and policy.enabled and self._ownership.owns(policy.id)

    async def _settle(self, found: StoredPolicy) -> list[PolicyActor]:
        """Have the right actor for a policy as the store knows it; this actor, when it is to begin."""
        name = found.policy.id
        actor = self._actors.get(name)
        if actor is not None and actor.version == found.version:
            self.writer.reconcile(actor, found.stored)
            return []
        self._stop(name)
        actor = await self._making.actor(found)
        if actor is None:
            return []
        self._actors[name] = actor
        self.writer.begin(actor, found.stored)
        return [actor]

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
        self.bandwidth.look()

    # -- metrics

    def _metric_used(self, metric: str, used: bool) -> None:
        if self.cluster is not None:
            self.cluster.used(metric, used)
            return
        pattern = metric_routing_key(metric, "*")
        if used:
            self.consumer.bind(pattern)
        else:
            self.consumer.unbind(pattern)

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
            "history": self._stream.head.history,
            "epoch": self._stream.head.epoch,
            "bus": self.consumer.connected.is_set(),
            "undecodable": self.router.aggregators.undecodable,
            "activations": self.activations.report(),
            "controllers": self.controllers.report(),
            "metrics": self.router.aggregators.report(),
            "bandwidth": self.bandwidth.report(),
            **({} if self.cluster is None else self.cluster.report()),
        }

    # -- tasks

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))
