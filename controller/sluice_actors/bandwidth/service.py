"""The service that allocates bandwidth: it receives the reports of all nodes, and sends each its shares once a second.

One host of the cluster does this, the one that owns :data:`NAME`.

* The host receives reports only while it owns :data:`NAME`, and publishes nothing after that.  Each round carries the
  term of the ownership, so nodes recognise the shares of a former owner as older.
* A round is made when all nodes have reported the last second, at the latest 180 ms after its end.
* A new owner publishes nothing before it has read the objectives and received reports for :data:`LISTEN_SECONDS`.
* A round is computed in a thread, so that the event loop continues.  Messages that arrive meanwhile wait until it is
  done: nothing else touches the allocator then.
* Shares are published as soon as they are computed.  Reports are made after that, while messages still wait.
* While Redis is unreachable the last objectives that were read hold, and no reports are written.  While RabbitMQ is
  unreachable nodes keep their shares; unsent shares are not sent later.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_actors.bandwidth.allocator import AllocationRound, Allocator
from sluice_actors.bandwidth.loads.decoder import PackedNodeLoad
from sluice_actors.bandwidth.reports.report_writer import FloorWatcher, ReportWriter
from sluice_actors.bandwidth.round_timer import RoundTimer
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.event_log import LogEvent, ignore_event
from sluice_actors.runtime.services import Ownership, Service, Spawn, owned_term, repeat_forever, wait_at_most
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import (
    BANDWIDTH_EXCHANGE,
    load_routing_key,
    rates_routing_key,
    shares_routing_key,
)
from sluice_core.connections.publisher import Publisher
from sluice_core.describe import BANDWIDTH, REPLICATION
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import ControllerRates
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.policies import Assignment, Change
from sluice_core.store import fencing
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

#: The name under which the allocating host owns its work.
NAME: Final = "controller/bandwidth"
#: Seconds for which the host receives reports of nodes before it publishes shares.
LISTEN_SECONDS: Final = 1.5
_LOADS: Final = load_routing_key("#")
_RATES: Final = rates_routing_key("#")
_RATES_PREFIX: Final = _RATES.removesuffix("#")
_OWNERSHIP_CHECK_SECONDS: Final = 1.0
#: Rounds that throttle no flow: this many are published at once, then one in this many.
_QUIET_ROUNDS, _QUIET_INTERVAL = 3, 5
_LOG_INTERVAL: Final = 60.0
#: Reports of a thousand nodes for some seconds; older ones are discarded.
_MAX_QUEUED, _TTL = 10_000, 5.0
_MAX_UNSENT: Final = 4096


class AllocationService(Service):
    """Allocates bandwidth while this host owns :data:`NAME`.

    :param settings: of the host
    :param groups: the host updates it before it calls :meth:`apply`
    :param on_report: called with the measured and assigned rates of each second
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        store: AsyncStore,
        ownership: Ownership,
        groups: GroupIndex,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        log_event: LogEvent = ignore_event,
        on_report: Callable[[BandwidthReport, IdleFlowReport], None] = lambda report, idle_flows: None,
    ) -> None:
        self._host: str = settings["host"]
        self._store = store
        self._ownership = ownership
        self._groups = groups
        self._clock = clock
        self._monotonic = monotonic
        url = settings["amqp_url"]
        self._publisher = Publisher(url, BANDWIDTH_EXCHANGE, limit=_MAX_UNSENT, window=_MAX_UNSENT)
        self._consumer = Consumer(url, self.receive, (), BANDWIDTH_EXCHANGE, max_length=_MAX_QUEUED, ttl=_TTL)
        self._timer = RoundTimer(clock, monotonic)
        self._writer = ReportWriter(store, lambda: self._owns)
        self._allocator: Allocator | None = None
        self._log_event = log_event
        self._on_report = on_report
        self._floors = FloorWatcher(log_event)
        self._ownership_changed = asyncio.Event()
        self._loaded = asyncio.Event()
        self._stale = asyncio.Event()
        # Held while a thread computes a round; messages and changes that arrive meanwhile.
        self._computing = asyncio.Lock()
        self._messages: deque[tuple[str, bytes, float]] = deque(maxlen=_MAX_QUEUED)
        # Also those since a reload of the objectives was requested, which the read may not contain yet.
        self._changes: deque[Change] = deque()
        self._loads = 0
        self._first_report: float | None = None
        self._number = 0
        self._quiet = 0
        self._logged = -math.inf
        #: Messages that could not be decoded.
        self.undecodable = 0

    # -- for the host

    def start(self, spawn: Spawn) -> None:
        """Begin to connect, on the running loop, and pass ``spawn`` the tasks that the host is to run."""
        self._publisher.start()
        self._consumer.start()
        spawn(repeat_forever("divide", self.run_round))
        spawn(repeat_forever("objectives", self.load_objectives))
        spawn(repeat_forever("picture", self._writer.write))

    def check_ownership(self) -> None:
        """Begin or end to allocate; the host calls this when ownership may have changed."""
        if not self._owns:
            self._leave()
        self._ownership_changed.set()

    def reload(self) -> None:
        """Load the objectives anew: the ones read before may be out of date."""
        if self._allocator is not None:
            self._changes.clear()
            self._loads += 1
            self._stale.set()

    def apply(self, change: Change) -> None:
        """Apply ``change``, which the groups contain already."""
        if self._allocator is None:
            return
        if self._stale.is_set() or not self._loaded.is_set() or self._computing.locked():
            self._changes.append(change)
        elif self._allocator.objectives.apply(change):
            self._quiet = 0

    def publish_rates(self, rates: ControllerRates) -> None:
        """Send the rates of a controller of this host to the host that allocates, which may be this one."""
        if self._publisher.connected.is_set():
            self._publisher.publish(rates_routing_key(rates.controller), rates.encode())

    def report(self) -> dict[str, Any]:
        """The allocator's part of the host's report."""
        allocator, reports = self._allocator, self._writer.reports
        if allocator is None:
            return {"dividing": False}
        return {
            "dividing": True,
            "term": owned_term(self._ownership, NAME),
            "number": self._number,
            "nodes": len(allocator.loads.nodes),
            "objectives": self._loaded.is_set(),
            "took": 0.0 if reports is None else reports[0].took,
            "repeated": allocator.loads.repeated,
            "unsound": allocator.loads.unsound,
            "undecodable": self.undecodable,
        }

    async def close(self) -> None:
        """Close the connections."""
        self._leave()
        await self._consumer.close()
        await self._publisher.close()

    # -- tasks

    async def run_round(self) -> None:
        """Wait for the next round and make it, or wait until this host owns :data:`NAME`."""
        if not self._owns:
            self._leave()
            self._ownership_changed.clear()
            await self._wait(self._ownership_changed, _OWNERSHIP_CHECK_SECONDS)
            return
        self._enter()
        nodes = () if self._allocator is None else self._allocator.loads.nodes.values()
        await self._wait(self._timer.complete, self._timer.start(nodes))
        if self._owns and self._loaded.is_set() and self._allocator is not None:
            await self._round(self._allocator)

    async def load_objectives(self) -> None:
        """Load the objectives whenever that is needed.

        :raises PeerError: when Redis is unreachable
        """
        await self._stale.wait()
        allocator, loads = self._allocator, self._loads
        keys, assignments = self._store.keys, list[Assignment]()
        names = await self._store.run(fencing.hash_fields(keys.assignments))
        for chunk in fencing.chunks(names):
            some = await self._store.run(fencing.assignments(keys, chunk))
            assignments += [each for each in some if each.kind in (BANDWIDTH, REPLICATION)]
        async with self._computing:
            if allocator is None or allocator is not self._allocator or loads != self._loads:
                return  # they must be loaded again, or not at all
            allocator.objectives.replace(assignments)
            for change in self._changes:
                allocator.objectives.apply(change)
            self._changes.clear()
            self._stale.clear()
            self._loaded.set()
            self._quiet = 0

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        await wait_at_most(event, max(seconds, 0.0))

    # -- reports of nodes

    def receive(self, routing_key: str, body: bytes) -> None:
        """Add the report of a node, or queue it while a round is computed."""
        if self._allocator is None:
            return
        if self._computing.locked():
            self._messages.append((routing_key, body, self._monotonic()))
        else:
            self._feed(self._allocator, routing_key, body, self._monotonic())

    def _feed(self, allocator: Allocator, routing_key: str, body: bytes, now: float) -> None:
        try:
            if routing_key.startswith(_RATES_PREFIX):
                allocator.controller_rates.feed(ControllerRates.decode(body), now)
                return
            load = PackedNodeLoad.decode(body)
            allocator.feed(load, now)
        except (DecodeError, TypeError, ValueError) as error:
            self.undecodable += 1
            if now - self._logged >= _LOG_INTERVAL:
                self._logged = now
                log.error("message with routing key `%s`: %s; %d so far", routing_key, error, self.undecodable)
            return
        if self._first_report is None:
            self._first_report = now
        self._timer.reported(load.node, now)

    # -- ownership

    @property
    def _owns(self) -> bool:
        return self._ownership.owns(NAME)

    def _enter(self) -> None:
        if self._allocator is None:
            log.info("dividing bandwidth from now on")
            self._allocator = Allocator(self._groups, self._host)
            self._floors = FloorWatcher(self._log_event)
            # Greater than any earlier number in the same term, also of another process, unless the clock was set back.
            self._number = max(self._number, int(self._clock()))
            self._first_report = None
            self._quiet = 0
            self.reload()
            self._consumer.bind(_LOADS)
            self._consumer.bind(_RATES)

    def _leave(self) -> None:
        if self._allocator is not None:
            log.info("dividing bandwidth no more")
            self._consumer.unbind(_LOADS)
            self._consumer.unbind(_RATES)
            self._allocator = self._writer.reports = None
            self._messages.clear()
            self._changes.clear()
            self._loaded.clear()
            self._stale.clear()

    # -- rounds

    async def _round(self, allocator: Allocator) -> None:
        self._number += 1
        now = self._monotonic()
        async with self._computing:
            made = await asyncio.to_thread(
                allocator.allocate, now, self._clock(), owned_term(self._ownership, NAME), self._number
            )
            if allocator is self._allocator and self._owns:  # otherwise this host has lost the ownership meanwhile
                if self._first_report is not None and now - self._first_report >= LISTEN_SECONDS:
                    self._publish(made)
                reports = await asyncio.to_thread(lambda: made.reports)
                if allocator is self._allocator and self._owns:
                    self._writer.put(reports)
                    self._on_report(*reports)
                    self._floors.update(reports[0].infeasible, now)
            await self._catch_up(allocator)

    async def _catch_up(self, allocator: Allocator) -> None:
        """Apply the messages and changes that arrived while a thread computed, one by one, so that the loop goes on."""
        while allocator is self._allocator:
            if self._changes and not self._stale.is_set():
                if allocator.objectives.apply(self._changes.popleft()):
                    self._quiet = 0
            elif self._messages:
                self._feed(allocator, *self._messages.popleft())
            else:
                break
            await asyncio.sleep(0)

    def _publish(self, made: AllocationRound) -> None:
        self._quiet = 0 if made.governed else self._quiet + 1
        if not made.governed and self._quiet > _QUIET_ROUNDS and self._quiet % _QUIET_INTERVAL:
            return
        if self._publisher.connected.is_set():
            for node, body in made.messages.items():
                self._publisher.publish(shares_routing_key(node), body)
