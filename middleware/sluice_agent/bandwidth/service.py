"""Bandwidth on one node: the credit server for workers, shares from the broker, loads to the broker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_agent.bandwidth.io_levels import IoLevels
from sluice_agent.bandwidth.loads import PERIOD, LoadMeter, disk_traffic
from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_agent.bandwidth.server import CreditServer
from sluice_agent.bandwidth.shares import SUFFIX, ShareReceiver, VolumeShareFile
from sluice_agent.metrics.publisher import Bus, call_each_second
from sluice_agent.settings import PUBLISH_DELAY, Settings
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import (
    BANDWIDTH_EXCHANGE,
    load_routing_key,
    shares_routing_key,
    volume_shares_routing_key,
)
from sluice_core.connections.publisher import Publisher
from sluice_core.messages.bandwidth import SIDES, VOLUME_SHARES_SUFFIX

log = logging.getLogger(__name__)

#: Loads kept while the broker is unreachable: they describe the past second, so late ones are of little use.
_KEPT: Final = 3
#: Seconds after its start for which an agent publishes no load: workers join within one, and their first report
#: does not cover a whole second.
QUIET_START: Final = 2 * PERIOD
#: Seconds after which the broker drops undelivered shares.
_LIFE: Final = 5.0


@dataclass(eq=False)
class BandwidthService:
    """Without the broker: call :meth:`tick` shortly after each second, and :meth:`receive` for each message."""

    settings: Settings
    #: Where loads are published; None: nowhere.
    bus: Bus | None
    #: The wall clock, in seconds.
    clock: Callable[[], float] = time.time
    quiet_start: float = QUIET_START

    def __post_init__(self) -> None:
        settings = self.settings
        self._limiter = NodeLimiter()
        self._levels = IoLevels()
        self._was_limiting = False
        self._reports_from = time.monotonic() + self.quiet_start
        self._loads = LoadMeter(settings.node, settings.capacity, self.clock)
        self.server = CreditServer(settings.socket, self._limiter, self._loads, self._levels)
        self.shares = ShareReceiver(settings.node, self.server.apply_shares, Path(f"{settings.snapshot_dir}{SUFFIX}"))
        self.volume_shares = VolumeShareFile(settings.node, Path(f"{settings.snapshot_dir}{VOLUME_SHARES_SUFFIX}"))

    def open(self) -> None:
        """Listen, and restore the limits of the previous agent of this node.

        :raises PeerError: when the socket cannot be opened
        """
        self.server.open(self.settings.worker_mode, self.settings.worker_group)
        if self.bus is not None:
            self.shares.restore()

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle shares from the broker, of volumes or of all other flows.

        :raises DecodeError: when the message contains no shares
        """
        if routing_key == volume_shares_routing_key(self.settings.node):
            self.volume_shares.receive(body)
        else:
            self.shares.receive(routing_key, body)

    def tick(self) -> None:
        """Close the last second, unless it is closed: publish its load, send priorities and rates to the workers."""
        load = self._loads.close_window(self._limiter.is_limiting, PUBLISH_DELAY)
        if load is not None and self.bus is not None and time.monotonic() >= self._reports_from:
            self.bus.publish(load_routing_key(self.settings.node), load.encode())
        sides = self._levels.update(self.shares.last, disk_traffic(self._loads.rows))
        is_limiting, self._was_limiting = self._limiter.is_limiting or self._was_limiting, self._limiter.is_limiting
        if sides or is_limiting:  # limited workers must see that the agent runs, and when limits end
            self.server.send_priorities(SIDES if is_limiting else sides)
            self.server.send_rates()
        self.shares.tick()


async def serve(settings: Settings) -> None:
    """Run the bandwidth service of one node until cancelled; without a broker nothing is limited.

    :raises PeerError: when the socket cannot be opened
    """
    publisher = Publisher(settings.amqp_url, BANDWIDTH_EXCHANGE, limit=_KEPT) if settings.amqp_url else None
    service = BandwidthService(settings, publisher)
    service.open()
    async with AsyncExitStack() as resources:
        if publisher is not None:
            keys = (shares_routing_key(settings.node), volume_shares_routing_key(settings.node))
            consumer = Consumer(settings.amqp_url, service.receive, keys, BANDWIDTH_EXCHANGE, _KEPT, _LIFE)
            resources.push_async_callback(publisher.close)
            resources.push_async_callback(consumer.close)
            publisher.start()
            consumer.start()
        resources.callback(service.server.close)
        await call_each_second(service.tick, PUBLISH_DELAY)
