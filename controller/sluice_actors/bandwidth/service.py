"""The dividing host's task: listen to all nodes, divide once a second, tell each its part.

One host of the team does this, the one that owns :data:`NAME`.

* Loads are heard only while that is us, and nothing is published once it is not.  Each round carries the term of our
  ownership, so whatever a former owner still says is older.
* A round is made as soon as everybody has told the last second, at the latest ``divide_delay_ms`` after its end.
* A new owner publishes nothing before the objectives are read and nodes were heard for :data:`LISTEN_SECONDS`.
* Dividing is done in a thread, so that the host's loop goes on.  What comes meanwhile waits until that is done: nothing
  else touches the divider then.
* Shares are published as soon as they are there, and the picture is made after that, while what comes still waits.
* Redis away: the objectives are those that were read last, and the picture is not shown.  RabbitMQ away: nodes go on
  with what they have; what could not be sent is not sent later.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

from sluice_actors.bandwidth.allocator import AllocationRound, Allocator
from sluice_actors.bandwidth.loads.decoder import PackedNodeLoad
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.ownership import Ownership
from sluice_actors.runtime.tasks import repeat_forever
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import BANDWIDTH_EXCHANGE, load_routing_key, shares_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.describe import BANDWIDTH, REPLICATION
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.messages.policies import Assignment, Change
from sluice_core.store import fencing
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

#: What the dividing host owns.
NAME: Final = "controller/bandwidth"
#: Seconds for which nodes are heard before they are told anything.
LISTEN_SECONDS: Final = 1.5
#: Seconds for which a picture is shown.
REPORT_TTL: Final = 10
_LOADS: Final = load_routing_key("#")
_LOOK_AGAIN: Final = 1.0
#: A node that said something within this time is waited for.
_LATELY: Final = 2.5
#: The seconds of two rounds end so much apart, however our clock was set meanwhile.
_APART: Final = 0.5
#: Where nothing is held back: what nodes are told at once, and then every so many rounds.
_QUIET, _NOW_AND_THEN = 3, 5
_COMPLAIN: Final = 60.0
#: Loads of a thousand nodes for some seconds; old ones are of no use.
_QUEUED, _TTL = 10_000, 5.0
_WAITING: Final = 4096


class Sender(Protocol):
    """As ``sluice_core.connections.publisher.Publisher``."""

    connected: asyncio.Event

    def start(self) -> None: ...

    def publish(self, routing_key: str, body: bytes) -> None: ...

    async def close(self) -> None: ...


class Receiver(Protocol):
    """As ``sluice_core.connections.consumer.Consumer``."""

    def start(self) -> None: ...

    def bind(self, pattern: str) -> None: ...

    def unbind(self, pattern: str) -> None: ...

    async def close(self) -> None: ...


class BandwidthService:
    """Divides while :data:`NAME` is ours.

    :param settings: of the host
    :param groups: kept up by the host, before :meth:`apply`
    :param bus: publisher and consumer, given by tests; what the consumer gets goes to :meth:`received`
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        store: AsyncStore,
        ownership: Ownership,
        groups: GroupIndex,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        bus: tuple[Sender, Receiver] | None = None,
    ) -> None:
        self._host: str = settings["host"]
        self._delay: float = settings["divide_delay_ms"] / 1000
        self._store = store
        self._ownership = ownership
        self._groups = groups
        self._clock = clock
        self._monotonic = monotonic
        self._publisher, self._consumer = bus if bus is not None else self._connected(settings["amqp_url"])
        self._allocator: Allocator | None = None
        self._moved = asyncio.Event()
        self._told = asyncio.Event()
        self._read = asyncio.Event()
        self._stale = asyncio.Event()
        # What the stream said since it was asked to read everything, which may have come too late for that.
        self._meanwhile: list[Change] = []
        # Held while a thread divides, and what came while it was.
        self._allocating = asyncio.Lock()
        self._bodies: deque[tuple[str, bytes, float]] = deque(maxlen=_QUEUED)
        self._changes: list[Change] = []
        self._readings = 0
        self._heard: float | None = None
        self._awaited: set[str] = set()
        self._boundary = -math.inf
        self._number = 0
        self._quiet = 0
        self._picture: tuple[BandwidthReport, IdleFlowReport] | None = None
        self._shown = asyncio.Event()
        self._complained = -math.inf
        #: Messages that could not be read.
        self.undecodable = 0

    def _connected(self, url: str) -> tuple[Sender, Receiver]:
        publisher = Publisher(url, BANDWIDTH_EXCHANGE, limit=_WAITING, window=_WAITING)
        return publisher, Consumer(url, self.received, (), BANDWIDTH_EXCHANGE, max_length=_QUEUED, ttl=_TTL)

    # -- what the host says

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Begin to connect, on the running loop, and give ``spawn`` what the host is to run as tasks."""
        self._publisher.start()
        self._consumer.start()
        spawn(repeat_forever("divide", self.step))
        spawn(repeat_forever("objectives", self.read))
        spawn(repeat_forever("picture", self.show))

    def look(self) -> None:
        """It may be ours now, or not any more; to be called when that may have changed."""
        if not self._ours:
            self._leave()
        self._moved.set()

    def reread(self) -> None:
        """What was known of the store may not hold any more; the groups were read anew."""
        if self._allocator is not None:
            self._meanwhile.clear()
            self._changes.clear()
            self._readings += 1
            self._stale.set()

    def apply(self, change: Change) -> None:
        """Take ``change``, of which the groups know already."""
        if self._allocator is None:
            return
        if self._stale.is_set() or not self._read.is_set():
            self._meanwhile.append(change)
        elif self._allocating.locked():
            self._changes.append(change)
        elif self._allocator.objectives.apply(change):
            self._quiet = 0

    def report(self) -> dict[str, Any]:
        """For the host's report."""
        allocator, shown = self._allocator, self._picture
        if allocator is None:
            return {"dividing": False}
        return {
            "dividing": True,
            "term": self._term(),
            "number": self._number,
            "nodes": len(allocator.loads.nodes),
            "objectives": self._read.is_set(),
            "took": 0.0 if shown is None else shown[0].took,
            "repeated": allocator.loads.repeated,
            "unsound": allocator.loads.unsound,
            "undecodable": self.undecodable,
        }

    async def close(self) -> None:
        """Hang up."""
        self._leave()
        await self._consumer.close()
        await self._publisher.close()

    # -- the tasks

    async def step(self) -> None:
        """Wait for the next round and make it, or wait until dividing is ours."""
        if not self._ours:
            self._leave()
            self._moved.clear()
            await self._wait(self._moved, _LOOK_AGAIN)
            return
        self._enter()
        await self._wait(self._told, self._await_second())
        if self._ours and self._read.is_set() and self._allocator is not None:
            await self._round(self._allocator)

    async def read(self) -> None:
        """Read the objectives whenever that is needed.

        :raises PeerError: when Redis is away
        """
        await self._stale.wait()
        allocator, reading = self._allocator, self._readings
        keys, found = self._store.keys, list[Assignment]()
        names = await self._store.run(fencing.hash_fields(keys.assignments))
        for part in fencing.chunks(names):
            some = await self._store.run(fencing.assignments(keys, part))
            found += [one for one in some if one.kind in (BANDWIDTH, REPLICATION)]
        if allocator is None or allocator is not self._allocator or reading != self._readings:
            return  # it is to be read anew, or not at all
        async with self._allocating:
            if allocator is not self._allocator or reading != self._readings:
                return
            allocator.objectives.replace(found)
            for change in self._meanwhile:
                allocator.objectives.apply(change)
            self._meanwhile.clear()
            self._stale.clear()
            self._read.set()
            self._quiet = 0

    async def show(self) -> None:
        """Write the newest picture, and the promises beside it where they do not lie there yet.

        :raises PeerError: when Redis is away
        """
        await self._shown.wait()
        self._shown.clear()
        if self._picture is not None and self._ours:
            (picture, promises), keys = self._picture, self._store.keys
            if picture.promises:
                key = keys.promises(picture.promises)
                kept = await self._store.run(Operation((("EXPIRE", key, REPORT_TTL),), lambda replies: replies[0]))
                if not kept:
                    await self._store.run(Operation((("SET", key, promises.raw, "EX", REPORT_TTL),), nothing))
            data = await asyncio.to_thread(picture.encode)  # some megabytes in a big cluster
            await self._store.run(Operation((("SET", keys.bandwidth, data, "EX", REPORT_TTL),), nothing))

    # -- hearing

    def received(self, routing_key: str, body: bytes) -> None:
        """Take what a node told."""
        if self._allocator is None:
            return
        if self._allocating.locked():
            self._bodies.append((routing_key, body, self._monotonic()))
        else:
            self._hear(self._allocator, routing_key, body, self._monotonic())

    def _hear(self, allocator: Allocator, routing_key: str, body: bytes, now: float) -> None:
        try:
            load = PackedNodeLoad.decode(body)
            allocator.feed(load, now)
        except (DecodeError, TypeError, ValueError) as error:
            self._complain(routing_key, error)
            return
        if self._heard is None:
            self._heard = now
        if now >= self._boundary and load.node in self._awaited:
            self._awaited.discard(load.node)
            if not self._awaited:
                self._told.set()

    def _complain(self, routing_key: str, error: Exception) -> None:
        self.undecodable += 1
        now = self._monotonic()
        if now - self._complained >= _COMPLAIN:
            self._complained = now
            log.error("message with routing key `%s`: %s; %d so far", routing_key, error, self.undecodable)

    # -- being the one

    @property
    def _ours(self) -> bool:
        return self._ownership.owns(NAME)

    def _term(self) -> int:
        held = self._ownership.fence((NAME,))
        return max(map(fencing.owner_term, held.values()), default=1)

    def _enter(self) -> None:
        if self._allocator is None:
            log.info("dividing bandwidth from now on")
            self._allocator = Allocator(self._groups, self._host)
            # More than before, in the same term: also by a process before this one, unless the clock was set back.
            self._number = max(self._number, int(self._clock()))
            self._heard = None
            self._quiet = 0
            self.reread()
            self._consumer.bind(_LOADS)

    def _leave(self) -> None:
        if self._allocator is not None:
            log.info("dividing bandwidth no more")
            self._consumer.unbind(_LOADS)
            self._allocator = self._picture = None
            self._bodies.clear()
            self._changes.clear()
            self._read.clear()
            self._stale.clear()

    # -- rounds

    def _await_second(self) -> float:
        """Wait for everybody's news of the second that ends next; for so long at most.

        The wall's clock only says where seconds end; which had their round is known by the other, which never jumps.
        """
        now, there = self._clock(), self._monotonic()
        boundary = there + math.floor(now - self._delay) + 1 - now
        if boundary - self._boundary < _APART:
            boundary += 1.0
        self._boundary = boundary
        nodes = () if self._allocator is None else self._allocator.loads.nodes.values()
        self._awaited = {node.name for node in nodes if self._boundary - node.arrived < _LATELY}
        for node in nodes:
            if node.arrived >= self._boundary:
                self._awaited.discard(node.name)
        self._told.clear()
        return self._boundary + self._delay - there

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await event.wait()

    async def _round(self, allocator: Allocator) -> None:
        self._number += 1
        now = self._monotonic()
        async with self._allocating:
            made = await asyncio.to_thread(allocator.allocate, now, self._clock(), self._term(), self._number)
            if allocator is self._allocator and self._ours:  # or else it was taken from us meanwhile
                if self._heard is not None and now - self._heard >= LISTEN_SECONDS:
                    self._publish(made)
                shown = await asyncio.to_thread(lambda: made.reports)
                if allocator is self._allocator and self._ours:
                    self._picture = shown
                    self._shown.set()
            await self._catch_up(allocator)

    async def _catch_up(self, allocator: Allocator) -> None:
        """Take what came while a thread divided, one after the other, so that the loop goes on."""
        while allocator is self._allocator and (self._bodies or self._changes):
            if self._changes:
                change = self._changes.pop(0)
                if allocator.objectives.apply(change):
                    self._quiet = 0
            else:
                self._hear(allocator, *self._bodies.popleft())
            await asyncio.sleep(0)

    def _publish(self, made: AllocationRound) -> None:
        self._quiet = 0 if made.governed else self._quiet + 1
        if not made.governed and self._quiet > _QUIET and self._quiet % _NOW_AND_THEN:
            return
        if self._publisher.connected.is_set():
            for node, body in made.messages.items():
                self._publisher.publish(shares_routing_key(node), body)
