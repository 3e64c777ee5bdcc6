"""The actor host: one process that runs policy actors and the aggregators they need.

Theory of operation

* A host is a list of services (``sluice_actors.runtime.services``), started in order and closed in reverse.
* The task *follow* reads policies, states and assignments once, then the change stream, and starts and stops actors
  (``sluice_actors.policies.policy_runner``).  After a gap in the stream, another history or a smaller epoch it reads
  everything again.
* The task *own* rebalances the slots of the team.  Policies of gained slots are read and start with the windows of the
  last seconds; actors of lost slots stop at once.
* While Redis or RabbitMQ is unreachable, the tasks try again with growing pauses; the actors keep running.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from sluice_actors.activations.calls import Activations, ServiceStates
from sluice_actors.activations.change_observer import ACTORS, ChangeObserver
from sluice_actors.activations.existing_rewrites import ExistingRewrites
from sluice_actors.bandwidth.service import NAME as ALLOCATION
from sluice_actors.bandwidth.service import AllocationService
from sluice_actors.controllers.manager import ControllerManager
from sluice_actors.hosts.change_stream import ChangeStream
from sluice_actors.hosts.cluster_services import ClusterServices
from sluice_actors.metric_history.service import MetricHistory
from sluice_actors.metrics.aggregator_pool import BatchReceiver
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.space_metrics import SpaceMetrics
from sluice_actors.node_watcher import NodeWatcher
from sluice_actors.policies.actor import Context
from sluice_actors.policies.actor_factory import ActorFactory
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.policies.policy_runner import PolicyRunner
from sluice_actors.runtime.event_log import EventLog
from sluice_actors.runtime.services import Service, repeat_forever, wait_at_most
from sluice_actors.runtime.system import ActorSystem
from sluice_actors.status_publisher import StatusPublisher
from sluice_actors.volumes.services import VolumeServices
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Change
from sluice_core.store.store import AsyncStore, cancel_tasks

#: The host compares its slots with Redis at least this often, in case a message about a change is lost.
_LOOK_AGAIN: Final = 2.0
#: Seconds that a task has to end before it is cancelled again.
_CANCEL_AGAIN: Final = 0.2


class Host:
    """Runs the actors of the policies in one store, which it shares with all hosts of that store.

    ``settings`` are the values of ``sluice_actors.settings.OPTIONS``.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Callable[[], float] = time.time) -> None:
        self.name: str = settings["host"]
        self.store = AsyncStore(settings["redis_url"], settings["redis_prefix"])
        self.system = ActorSystem()
        #: Set once all slots of this host have been read for the first time.
        self.synced = asyncio.Event()
        self._clock = clock
        self._groups = GroupIndex()
        self._stream = ChangeStream(self.store)
        self._stale = True
        # Slots that this host gained and has not read yet.
        self._unread: set[str] = set()
        self._moved = asyncio.Event()
        # Held by the task that starts or stops actors.
        self._turn = asyncio.Lock()
        self._started = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._wire(settings)

    def _wire(self, settings: Mapping[str, Any]) -> None:
        """Build the services from the bottom up; the last lines list them in the order in which they start."""
        clock = self._clock
        self.router = MetricRouter(self.system, clock)
        self.receiver = BatchReceiver(settings["amqp_url"], self.router.aggregators)
        self.cluster = ClusterServices(settings, self.router, self.receiver, clock)
        ownership = self.cluster.team
        self.service_states = ServiceStates(self.store)
        self.activations = Activations(
            UrlAllowlist.from_option(settings["activation_hosts"]), self.service_states, ownership.owns
        )
        self.change_observer = ChangeObserver(self.store, self.activations, ownership, clock)
        self.existing_rewrites = ExistingRewrites(self.store, ownership, self._groups, clock)
        self.events = EventLog(self.store, self.name, clock)
        self.writer = DecisionWriter(
            self.store,
            f"{ACTORS}{self.name}",
            ownership,
            self.activations.committed,
            log_event=self.events.add,
        )
        context = Context(
            self.writer, self.router.subscription, self._groups, ConditionCache(), settings["transient_windows"], clock
        )
        self.policies = PolicyRunner(self.system, self.writer, ActorFactory(context, self.writer), self.router.backlog)
        self.status_publisher = StatusPublisher(
            self.name, self.store, self.system, self.router, self.policies.actors, self.report, clock
        )
        self.metric_history = MetricHistory(settings, ownership, ALLOCATION, clock)
        self.bandwidth = AllocationService(
            settings,
            self.store,
            ownership,
            self._groups,
            clock,
            log_event=self.events.add,
            on_report=self.metric_history.add_report,
        )
        self.volumes = VolumeServices(
            settings, self.store, ownership, self._groups, self.router, clock, self.events.add
        )
        publish_soon, publish_rates = self.status_publisher.publish_soon, self.bandwidth.publish_rates
        self.controllers = ControllerManager(settings, self.writer, self.router, clock, publish_soon, publish_rates)
        self._services: list[Service] = [
            self.cluster,
            self.events,
            NodeWatcher(self.store, ownership, settings["node_timeout"], clock),
            self.writer,
            self.system,
            self.receiver,
            self.metric_history,
            self.bandwidth,
            self.controllers,
            self.service_states,
            self.activations,
            self.existing_rewrites,
            *self.volumes.services,
            SpaceMetrics(self.store, ownership, clock, settings["amqp_url"]),
            self.status_publisher,
        ]

    def start(self) -> None:
        """Start all services and tasks, on the running loop."""
        self._started = self._clock()
        self.cluster.team.on_change = self._moved.set
        for service in self._services:
            service.start(self._spawn_task)
        self._spawn_task(repeat_forever("follow", self._follow))
        self._spawn_task(repeat_forever("own", self._own))

    async def failed(self) -> None:
        """Never return; raise the exception that ended one of the tasks, which is a bug of Sluice."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Write the pending decisions (for at most 2 s) and end."""
        await cancel_tasks(self._tasks, _CANCEL_AGAIN)
        for service in reversed(self._services):
            await service.close()
        await self.store.close()

    def report(self) -> dict[str, Any]:
        """Return the report that the host publishes about itself."""
        counts = self.system.counts
        return {
            "at": self._clock(),
            "started": self._started,
            "actors": len(self.policies.actors),
            "suspended": self.system.suspended,
            "failures": counts.failures,
            "restarts": counts.restarts,
            "dropped": counts.dropped,
            "pending": self.writer.pending,
            "history": self._stream.head.history,
            "epoch": self._stream.head.epoch,
            "bus": self.receiver.consumer.connected.is_set(),
            "undecodable": self.router.aggregators.undecodable,
            "activations": self.activations.report(),
            "controllers": self.controllers.report(),
            "metrics": self.router.aggregators.report(),
            "bandwidth": self.bandwidth.report(),
            "cinder": self.volumes.hears_cinder(),
            "metric_history": self.metric_history.report(),
            **self.cluster.report(),
        }

    # -- follow

    async def _follow(self) -> None:
        async with self._turn:
            await self._refresh()
            await self.policies.reread_lost()
        changes = await self._stream.next()
        async with self._turn:
            await self._apply_all(changes)

    async def _refresh(self) -> None:
        """Read everything, if that is needed."""
        if self._stale:
            await self._read_everything()
            self._stale = False

    async def _apply_all(self, changes: list[Change] | None) -> None:
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
        self.bandwidth.reload()
        self.volumes.reload()
        self.activations.replace(entries)
        await self.change_observer.reread(self.writer.history)
        await self.existing_rewrites.reread()
        self.controllers.replace((await self.store.uploads()).values())
        await self.policies.read_all()

    async def _apply(self, change: Change) -> None:
        self._groups.apply(change)
        self.bandwidth.apply(change)
        self.volumes.apply(change)
        self.activations.apply(change)
        self.controllers.apply(change)
        self.existing_rewrites.apply(change)
        await self.change_observer.apply(change)
        for name in change.policies:
            await self.policies.read(name)

    # -- own

    async def _own(self) -> None:
        """Act for the slots that this host owns and for no others."""
        await wait_at_most(self._moved, _LOOK_AGAIN)
        async with self._turn:
            self._moved.clear()
            try:
                await self._refresh()
                slots = await self.cluster.team.rebalance()
                self.policies.stop_slots(slots.lost)
                self._unread = (self._unread - slots.lost) | slots.gained
                if self._unread:
                    self._unread -= await self.policies.take_over(self._unread, self._moved.is_set)
            except PeerError:
                self._moved.set()
                raise
        if self.cluster.team.owned_slots and not self._unread:
            self.synced.set()
        if slots.gained or slots.lost:
            self.controllers.review_all()
            self.bandwidth.check_ownership()
            self.existing_rewrites.review()
            self.change_observer.slots_gained(slots.gained)
            self.status_publisher.publish_soon()
        await self.change_observer.reconcile()

    # -- tasks

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))
