"""Reads Cinder's pools into Redis, with their volumes and capabilities, for tiers and volumes.

One host of the cluster does this, the one that owns :data:`NAME`.  A pool that Cinder does not report any more is
removed with the next reading; while Cinder is unreachable, the pools keep their age (``Pool.seen``) instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import CallerError, PeerError
from sluice_core.messages.nodes import HIGHEST, LOWEST, MetricBatch
from sluice_core.metrics.node_metrics import POOL
from sluice_core.store.store import AsyncStore
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.messages import Pool
from sluice_volumes.metrics import POOL_FREE, POOL_PERIOD, pool_values
from sluice_volumes.operations import write_pools

#: The name under which the reading host owns its work.
NAME: Final = "volumes/pools"
#: Seconds between two readings.
INTERVAL: Final = POOL_PERIOD
#: Stands for a node in batches of these metrics.
REPORTER: Final = "cinder"
_UNSENT: Final = 4


async def discover(cinder: Cinder, store: AsyncStore, now: float) -> list[Pool]:
    """Replace the known pools by those that Cinder reports now, and return these.

    :raises PeerError: when Cinder or Redis is unreachable, or Cinder shows no pools; then nothing is changed
    """
    try:
        pools = await asyncio.to_thread(cinder.pools)
    except CallerError as error:
        raise PeerError(f"cinder's pools cannot be read: {error}") from error
    await store.run(write_pools(store.keys, [replace(one, seen=now) for one in pools]))
    return pools


def pool_batches(pools: Iterable[Pool], now: float, number: int) -> Iterator[MetricBatch]:
    """Free and used space as batches of metrics, for the pools that report their size.

    :param number: counts these batches
    """
    window = (int(now // POOL_PERIOD) - 1) * int(POOL_PERIOD)
    for metric, found in pool_values(pools).items():
        merge = LOWEST if metric == POOL_FREE else HIGHEST
        yield MetricBatch(REPORTER, metric, window, number, {POOL: found}, POOL_PERIOD, merge=merge)


@dataclass(eq=False)
class PoolDiscovery(Service):
    """Reads pools while this host owns :data:`NAME`."""

    cinder: Cinder
    store: AsyncStore
    ownership: Ownership
    clock: Callable[[], float]
    amqp_url: str
    interval: float = INTERVAL
    _number: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._publisher = Publisher(self.amqp_url, limit=_UNSENT)

    def start(self, spawn: Spawn) -> None:
        self._publisher.start()
        spawn(repeat_forever("discover pools", self._step))

    async def _step(self) -> None:
        if self.ownership.owns(NAME):
            pools = await discover(self.cinder, self.store, self.clock())
            self._number += 1
            for batch in pool_batches(pools, self.clock(), self._number):
                self._publisher.publish(metric_routing_key(batch.metric, REPORTER), batch.encode())
        await asyncio.sleep(self.interval)

    async def close(self) -> None:
        await self._publisher.close()
