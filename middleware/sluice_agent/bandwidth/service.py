"""Credit on one node, assembled: workers ask at the door, shares come over the broker, and loads go there."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sluice_agent.bandwidth.io_levels import Levels
from sluice_agent.bandwidth.loads import PERIOD, Loads, moved_at_disks
from sluice_agent.bandwidth.node_limiter import Ledger
from sluice_agent.bandwidth.server import CreditDoor
from sluice_agent.bandwidth.shares import SUFFIX, Inbox
from sluice_agent.metrics.publisher import Bus
from sluice_agent.settings import Settings
from sluice_core.connections.bus import Consumer, Publisher
from sluice_core.messages.bandwidth import SIDES, Shares
from sluice_core.store.keys import BANDWIDTH_EXCHANGE, load_routing_key, shares_routing_key

log = logging.getLogger(__name__)

#: Loads are of the past second: few are worth to be sent later.
_KEPT: Final = 3
#: Seconds of a new agent's life that it tells nobody of: workers join within one, and only what they tell after
#: another one is of a whole second.
SILENT: Final = 2 * PERIOD
#: Seconds for which shares are worth to be delivered.
_LIFE: Final = 5.0


class Credit:
    """All of it but the broker; :meth:`tick` a moment after each second, :attr:`inbox` for each message."""

    def __init__(
        self,
        settings: Settings,
        bus: Bus | None,
        clock: Callable[[], float] = time.time,
        silent: float = SILENT,
    ) -> None:
        """
        :param bus: loads go there; None: nowhere
        :param clock: the wall's
        :param silent: seconds for which loads are kept to oneself
        """
        self._settings = settings
        self._bus = bus
        self._clock = clock
        self._ledger = Ledger()
        self._levels = Levels()
        self._governed = False
        self._speaks = time.monotonic() + silent
        self._loads = Loads(settings.node, settings.capacity, clock)
        self.door = CreditDoor(settings.socket, self._ledger, self._loads, self._levels)
        self.inbox = Inbox(settings.node, self._took, Path(f"{settings.snapshot_dir}{SUFFIX}"))

    def open(self) -> None:
        """Listen, and hold back what was held back before.

        :raises PeerError: when the socket cannot be had
        """
        self.door.open(self._settings.worker_mode, self._settings.worker_group)
        if self._bus is not None:
            self.inbox.restore()

    async def run(self) -> None:
        """Tell of each second until cancelled."""
        while True:
            now = self._clock() - self._settings.publish_delay
            await asyncio.sleep(math.floor(now) + PERIOD - now)
            self.tick()

    def tick(self) -> None:
        """Close the second that ended, unless it was closed before."""
        load = self._loads.close(self._ledger.governed, self._settings.publish_delay)
        if load is not None and self._bus is not None and time.monotonic() >= self._speaks:
            self._bus.publish(load_routing_key(self._settings.node), load.encode())
        sides = self._levels.look(self.inbox.last, moved_at_disks(self._loads.rows))
        governed, self._governed = self._ledger.governed or self._governed, self._ledger.governed
        if sides or governed:  # who is held back must hear that the agent lives, and when that is over
            self.door.tell_levels(SIDES if governed else sides)
            self.door.tell_rates()
        self.inbox.tick()

    def _took(self, shares: Shares) -> None:
        self.door.take(shares)


async def serve(settings: Settings) -> None:
    """Everything about credit on one node, until cancelled; without a broker nothing is held back.

    :raises PeerError: when the socket cannot be had
    """
    if not settings.amqp_url:
        credit = Credit(settings, None)
        credit.open()
        try:
            await credit.run()
        finally:
            credit.door.close()
        return
    publisher = Publisher(settings.amqp_url, BANDWIDTH_EXCHANGE, limit=_KEPT)
    credit = Credit(settings, publisher)
    binding = shares_routing_key(settings.node)
    consumer = Consumer(settings.amqp_url, credit.inbox.received, [binding], BANDWIDTH_EXCHANGE, _KEPT, _LIFE)
    credit.open()
    publisher.start()
    consumer.start()
    try:
        await credit.run()
    finally:
        credit.door.close()
        await consumer.close()
        await publisher.close()
