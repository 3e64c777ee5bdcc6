"""What an actor host has more when it is one of a team: the team itself, and values that cross hosts.

A host that comes into a running team listens for a few windows before it joins, so that it has seen
what those saw whose work it will take over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_actors.hosts.exchange import EVERYBODY, MetricExchange
from sluice_actors.hosts.team import Team
from sluice_actors.metrics.backlog import Backlog
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import VALUES_EXCHANGE, metric_routing_key, values_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import PeerError
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

_TICK: Final = 0.25
#: Two windows, the second in which others say what they use, and a little.
WARM_UP: Final = 3.5
#: Reports of hosts that are no more are kept for so long …
_REMEMBERED: Final = 3600.0
#: … and looked for so often.
_TIDY: Final = 60.0
#: A host that reported within this time is at work.
_LATELY: Final = 12.0
#: Windows of 50,000 values are some megabytes; who is slower than this many gets them whole later.
_WAITING: Final = 64
_QUEUED: Final = 500
_TTL: Final = 5.0


class ClusterServices:
    """Joins the team, and keeps values going between its hosts."""

    def __init__(self, settings: Mapping[str, Any], clock: Callable[[], float]) -> None:
        self.host: str = settings["host"]
        self.backlog = Backlog()
        self._store = AsyncStore(settings["redis_url"], settings["redis_prefix"])
        url = settings["coordination_url"] or settings["redis_url"]
        self.team = Team(self._store, self.host, url, settings["heartbeat_ms"] / 1000)
        self._amqp_url: str = settings["amqp_url"]
        self._clock = clock
        self._publisher = Publisher(self._amqp_url, VALUES_EXCHANGE, limit=_WAITING, window=_WAITING)
        self._exchange: MetricExchange | None = None
        self._consumer: Consumer | None = None
        self._batches: Consumer | None = None
        self._joined = False
        self._tidied = 0.0

    def attach(self, router: MetricRouter, batches: Consumer) -> None:
        """Work for ``router``, whose batches come by ``batches``."""
        self._batches = batches
        keeper = self.team.keeper
        self._exchange = MetricExchange(self.host, router, self._publisher.publish, keeper, self._bind, self._clock)
        mine = (values_routing_key(self.host), values_routing_key(EVERYBODY))
        self._consumer = Consumer(
            self._amqp_url, self._exchange.received, mine, VALUES_EXCHANGE, max_length=_QUEUED, ttl=_TTL
        )  # fmt: skip

    def start(self) -> None:
        """Begin to listen, on the running loop; :meth:`step` joins."""
        assert self._consumer is not None
        self._publisher.start()
        self._consumer.start()

    async def step(self) -> None:
        """One turn of the host's task for all this.

        :raises PeerError: when Redis is away
        """
        if not self._joined:
            if await self._others():
                log.info("listening for %g s before joining the team", WARM_UP)
                await asyncio.sleep(WARM_UP)
            self._joined = True
            self.team.start()
        if self._clock() - self._tidied >= _TIDY:
            self._tidied = self._clock()
            await self._tidy()
        assert self._exchange is not None
        self._exchange.tick(alone=len(self.team.members) < 2)
        await asyncio.sleep(_TICK)

    def used(self, metric: str, used: bool) -> None:
        """For the hub."""
        assert self._exchange is not None
        self._exchange.used(metric, used)

    def report(self) -> dict[str, Any]:
        """For the host's report."""
        assert self._exchange is not None
        return {"team": self.team.report(), "values": self._exchange.report()}

    async def close(self) -> None:
        """Leave the team and hang up."""
        try:
            await self.team.give_back()
        except PeerError as error:
            log.warning("left without giving back what was ours: %s", error)
        await self.team.close()
        if self._exchange is not None and self._consumer is not None:
            self._exchange.close()
            await self._consumer.close()
            await self._publisher.close()
        await self._store.close()

    async def _others(self) -> bool:
        now = self._clock()
        hosts = await self._store.hosts()
        return any(name != self.host and now - report.get("at", 0) < _LATELY for name, report in hosts.items())

    async def _tidy(self) -> None:
        """Forget reports of hosts that ended long ago: most have a process id in their name."""
        hosts, key = await self._store.hosts(), self._store.keys.hosts
        old = [name for name, report in hosts.items() if self._clock() - report.get("at", 0) > _REMEMBERED]
        if old:
            await self._store.run(Operation((("HDEL", key, *old),), nothing))

    def _bind(self, metrics: frozenset[str]) -> None:
        assert self._batches is not None
        wanted = {metric_routing_key(metric, "*") for metric in metrics}
        for pattern in set(self._batches.bindings) - wanted:
            self._batches.unbind(pattern)
        for pattern in sorted(wanted - set(self._batches.bindings)):
            self._batches.bind(pattern)
