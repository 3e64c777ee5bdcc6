"""Publishes the usage and cost of motif spaces as metrics, for policies and history.

One host of the cluster does this, the one that owns :data:`NAME`: it reads the reports of the daemons in Redis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.store.store import AsyncStore
from sluice_motif_control.spaces import REPORTER, read_spaces, space_batches

#: The name under which the publishing host owns its work.
NAME: Final = "motifs/spaces"
_UNSENT: Final = 8


@dataclass(eq=False)
class SpaceMetrics(Service):
    """Publishes once a second while this host owns :data:`NAME`, and nothing without any space."""

    store: AsyncStore
    ownership: Ownership
    clock: Callable[[], float]
    amqp_url: str
    _number: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._publisher = Publisher(self.amqp_url, limit=_UNSENT)

    def start(self, spawn: Spawn) -> None:
        self._publisher.start()
        spawn(repeat_forever("metrics of spaces", self._step))

    async def _step(self) -> None:
        if self.ownership.owns(NAME):
            spaces = await self.store.run(read_spaces(self.store.keys))
            if spaces:
                self._number += 1
                for batch in space_batches(spaces, int(self.clock()) - 1, self._number):
                    self._publisher.publish(metric_routing_key(batch.metric, REPORTER), batch.encode())
        now = self.clock()
        await asyncio.sleep(1.0 - now % 1.0)  # until just after the next whole second

    async def close(self) -> None:
        await self._publisher.close()
