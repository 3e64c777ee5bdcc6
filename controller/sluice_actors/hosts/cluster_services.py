"""State that actor hosts of one store share: their team, and the batches of the metrics that they use.

A host that joins a running team listens for a few windows first, so that it has received the windows that the hosts
whose work it takes over have received.

Hosts of a team publish which metrics they use, on the exchange ``sluice.values``.  Each host closes the windows
of the metrics that its own actors need.  It receives the batches of those that others need as well, and keeps these for
some seconds without decoding them (:class:`~sluice_actors.metrics.aggregator_pool.Backlog`): a host that takes over a
policy evaluates the windows that the previous host had not evaluated.

Hosts of earlier versions aggregate each metric once and push its values to the others.  They ask the host that they
consider the owner, get no answer from this one, and then close the windows themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from sluice_actors.hosts.team import Team
from sluice_actors.metrics.aggregator_pool import BatchReceiver
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.runtime.services import Service, Spawn, repeat_forever
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import EVERY_HOST, VALUES_EXCHANGE
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import PackedMessage
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

#: The first byte of the message; messages of other versions begin with another byte.
_LETTER: Final = b"u"
#: Seconds between two messages of a host, and for which one is valid.
RENEW: Final = 1.0
_HOLDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class MetricUsage(PackedMessage):
    """The metrics that ``host`` needs."""

    host: str
    metrics: tuple[str, ...] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Decode the message, as the base class does.

        :raises DecodeError: also when a metric's name is not a text
        """
        usage = super(MetricUsage, cls).from_data(data)
        if not all(isinstance(one, str) for one in (usage.host, *usage.metrics)):
            raise DecodeError(f"`{usage}` names no host and metrics")
        return usage


@dataclass
class MetricUsageExchange:
    """Exchanges which metrics the hosts use.

    :param send: hands a message to the bus
    :param bind: called with the metrics whose batches this host is to receive
    """

    host: str
    send: Callable[[str, bytes], None]
    bind: Callable[[frozenset[str]], None]
    clock: Callable[[], float]
    undecodable: int = 0  #: messages that could not be read
    _used_here: set[str] = field(default_factory=set)
    _used_there: dict[str, float] = field(default_factory=dict)
    _sent: float = 0.0

    def set_used(self, metric: str, used: bool) -> None:
        """Record whether this host needs ``metric``; the router calls this."""
        (self._used_here.add if used else self._used_here.discard)(metric)
        self._rebind()

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle the message of another host."""
        if body[:1] != _LETTER:
            return
        try:
            usage = MetricUsage.decode(body[1:])
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, body[:200])
            return
        if usage.host != self.host:
            self._used_there.update(dict.fromkeys(usage.metrics, self.clock() + _HOLDS))
            self._rebind()

    def tick(self, alone: bool) -> None:
        """Publish this host's metrics each second, and drop unused metrics; called several times a second."""
        now = self.clock()
        if not alone and now - self._sent >= RENEW:
            self._sent = now
            usage = MetricUsage(self.host, tuple(sorted(self._used_here)))
            self.send(EVERY_HOST, _LETTER + usage.encode())
        if any(until < now for until in self._used_there.values()):
            self._used_there = {name: until for name, until in self._used_there.items() if until >= now}
            self._rebind()

    def report(self) -> dict[str, Any]:
        """The numbers of metrics that this host and others use, for the host's report."""
        here, there = len(self._used_here), len(self._used_there.keys() - self._used_here)
        return {"used": here, "kept": there, "undecodable": self.undecodable}

    def _rebind(self) -> None:
        self.bind(frozenset(self._used_here | self._used_there.keys()))


_TICK: Final = 0.25
#: Two windows, the second in which the others publish the metrics that they use, and a margin.
WARM_UP: Final = 3.5
#: Reports of hosts that have ended are kept for this many seconds …
_REMEMBERED: Final = 3600.0
#: … and checked this often.
_TIDY: Final = 60.0
#: A host that reported within this many seconds counts as running.
_LATELY: Final = 12.0
_WAITING: Final = 64
_QUEUED: Final = 500
_TTL: Final = 5.0


class ClusterServices(Service):
    """Joins the team; ``batches`` are those of the metrics that ``router`` or another host of the team uses."""

    def __init__(
        self, settings: Mapping[str, Any], router: MetricRouter, batches: BatchReceiver, clock: Callable[[], float]
    ) -> None:
        self._host: str = settings["host"]
        self._clock = clock
        self._store = AsyncStore(settings["redis_url"], settings["redis_prefix"])
        url = settings["coordination_url"] or settings["redis_url"]
        self.team = Team(self._store, self._host, url, settings["heartbeat_ms"] / 1000)
        amqp_url = settings["amqp_url"]
        self._publisher = Publisher(amqp_url, VALUES_EXCHANGE, limit=_WAITING, window=_WAITING)
        self._usage = MetricUsageExchange(self._host, self._publisher.publish, batches.bind_exactly, clock)
        router.on_use = self._usage.set_used
        self._consumer = Consumer(
            amqp_url, self._usage.receive, (EVERY_HOST,), VALUES_EXCHANGE, max_length=_QUEUED, ttl=_TTL
        )
        self._joined = False
        self._tidied = 0.0

    def start(self, spawn: Spawn) -> None:
        """Begin to listen; a task joins the team."""
        self._publisher.start()
        self._consumer.start()
        spawn(repeat_forever("team", self._step))

    async def close(self) -> None:
        """Leave the team and close the connections."""
        try:
            await self.team.release_slots()
        except PeerError as error:
            log.warning("left the team without releasing its slots: %s", error)
        await self.team.close()
        await self._consumer.close()
        await self._publisher.close()
        await self._store.close()

    def report(self) -> dict[str, Any]:
        """The service's part of the host's report."""
        return {"team": self.team.report(), "values": self._usage.report()}

    async def _step(self) -> None:
        if not self._joined:
            if await self._others():
                log.info("listening for %g s before joining the team", WARM_UP)
                await asyncio.sleep(WARM_UP)
            self._joined = True
            self.team.start()
        if self._clock() - self._tidied >= _TIDY:
            self._tidied = self._clock()
            await self._tidy()
        self._usage.tick(alone=len(self.team.members) < 2)
        await asyncio.sleep(_TICK)

    async def _others(self) -> bool:
        now = self._clock()
        hosts = await self._store.hosts()
        return any(name != self._host and now - report.get("at", 0) < _LATELY for name, report in hosts.items())

    async def _tidy(self) -> None:
        """Remove the reports of hosts that ended long ago: most have a process id in their name."""
        hosts, key = await self._store.hosts(), self._store.keys.hosts
        old = [name for name, report in hosts.items() if self._clock() - report.get("at", 0) > _REMEMBERED]
        if old:
            await self._store.run(Operation((("HDEL", key, *old),), nothing))
