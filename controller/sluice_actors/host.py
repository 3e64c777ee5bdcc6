"""The actor host: one process that runs policy actors and the aggregators they need.

Three tasks beside the actor system:

* *follow* reads policies, states and assignments once, then the change stream, and spawns and stops
  actors.  A gap in the stream, another history or a smaller epoch means reading everything again;
  actors whose policy is the same version go on untouched, and what the store holds is reconciled with
  what they want.
* *write* (``sluice_actors.writer``) commits what actors decide.
* *show* publishes the observed values of the policies that somebody looks at, and the host's report.

Redis or RabbitMQ away: the tasks try again with growing pauses, the actors go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from sluice_actors.feeds import Hub
from sluice_actors.ownership import Ownership, SingleHost
from sluice_actors.plans import Plans
from sluice_actors.policy import Context, Membership, NoGroups, PolicyActor, policy_actor
from sluice_actors.program import Programs
from sluice_actors.runtime import ActorSystem
from sluice_actors.writer import Writer
from sluice_core.bus import Consumer
from sluice_core.errors import Conflict, DecodeError, PeerError
from sluice_core.keys import metric_routing_key
from sluice_core.messages import Assignment, Change, Policy, PolicyState
from sluice_core.operations import Draft, Gap, Head
from sluice_core.store import AsyncStore

log = logging.getLogger(__name__)

_BLOCK_MS: Final = 1000
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
_REPORT_INTERVAL: Final = 5.0
_LAST_WORDS: Final = 2.0
_CANCEL_AGAIN: Final = 0.2
#: Spawning thousands of actors at a start gives the loop back so often.
_SPAWNS_PER_STEP: Final = 500


class Host:
    """Runs the actors of the policies in one store.

    ``settings`` are the values of ``sluice_actors.settings.OPTIONS``.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        ownership: Ownership | None = None,
        membership: Membership | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name: str = settings["host"]
        self.store = AsyncStore(settings["redis_url"], settings["redis_prefix"])
        self.system = ActorSystem()
        self.hub = Hub(self.system, settings["close_delay_ms"] / 1000, self._metric_used, clock)
        self.consumer = Consumer(settings["amqp_url"], self.hub.receive)
        self.writer = Writer(self.store, f"actors@{self.name}", self._lost, settings["commit_size"])
        #: Set once the store was read completely for the first time.
        self.synced = asyncio.Event()
        self._ownership = ownership if ownership is not None else SingleHost()
        self._context = Context(
            self.writer,
            self.hub.feed,
            membership if membership is not None else NoGroups(),
            Programs(),
            settings["transient_windows"],
            clock,
        )
        self._plans = Plans()
        self._actors: dict[str, PolicyActor] = {}
        self._head = Head()
        self._stale = True
        self._reread: set[str] = set()
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
        self._ownership.on_change(self._resync_soon)
        self.consumer.start()
        self._spawn_task(self._keep_on("follow", self._follow))
        self._spawn_task(self.writer.run())
        self._spawn_task(self._keep_on("show", self._show))

    async def failed(self) -> None:
        """Return never; raise what ended one of the tasks, which is a bug of ours."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Write down what is decided (for at most 2 s) and end."""
        await self._end_tasks()
        await self.consumer.close()
        self.hub.close()
        await self.system.idle()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self.writer.flush()
        except (PeerError, TimeoutError) as error:
            log.warning("%d policies were not written at the end: %s", self.writer.pending, error)
        await self.system.close()
        await self.store.close()

    # -- follow

    async def _follow(self) -> None:
        if self._stale:
            self._stale = False
            try:
                await self._read_everything()
            except PeerError:
                self._stale = True
                raise
        for policy in list(self._reread):
            await self._read_policy(policy)
            self._reread.discard(policy)
        changes = await self.store.changes_after(self._head.epoch, _BLOCK_MS)
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
        loaded = await self.store.load()
        policies = await self.store.policies()
        states = await self.store.states()
        stored: dict[str, list[Assignment]] = defaultdict(list)
        for assignment in loaded.assignments:
            stored[assignment.policy].append(assignment)
        self._head = Head(loaded.history, loaded.epoch)
        self.writer.history = loaded.history
        wanted = {policy.id: (policy, version) for policy, version in policies if self._ours(policy)}
        for name in self._actors.keys() - wanted.keys():
            self._stop(name)
        for count, (policy, version) in enumerate(wanted.values()):
            await self._settle(policy, version, states.get(policy.id), stored[policy.id])
            if count % _SPAWNS_PER_STEP == 0:
                await asyncio.sleep(0)
        self.synced.set()

    async def _apply(self, change: Change) -> None:
        for name in change.policies:
            await self._read_policy(name)

    async def _read_policy(self, name: str) -> None:
        found = await self.store.policy(name)
        if found is None or not self._ours(found[0]):
            self._stop(name)
            return
        policy, version = found
        actor = self._actors.get(name)
        if actor is None or actor.version != version:
            state = await self.store.state(name)
            stored = [one for one in await self.store.assignments() if one.policy == name] if state else []
            await self._settle(policy, version, state, stored)

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
        draft = Draft(self.writer.by, states=(failed,), expect={f"policy/{policy.id}": version})
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
            "metrics": self.hub.report(),
        }

    # -- tasks

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _end_tasks(self) -> None:
        """Cancel all tasks; again, since a cancellation that meets the end of a pipeline to Redis gets lost."""
        pending = {task for task in self._tasks if not task.done()}
        while pending:
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN)

    async def _keep_on(self, what: str, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat ``step``; with pauses while a peer is away."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await step()
            except PeerError as error:
                if pause == _FIRST_PAUSE:
                    log.warning("%s: %s", what, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE
