"""The host that reads Cinder's pools: what each holds and can do, into Redis, for whoever makes tiers and volumes.

One host of the cluster does this, the one that owns :data:`NAME`.  What Cinder does not report any more is removed with
the next reading; while Cinder is away, the pools keep their age (``Pool.seen``) instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from sluice_actors.runtime.ownership import Ownership
from sluice_actors.runtime.tasks import Service, Spawn, repeat_forever
from sluice_core.errors import CallerError, PeerError
from sluice_core.store.store import AsyncStore
from sluice_core.volumes.messages import Pool
from sluice_core.volumes.operations import write_pools

#: What the reading host owns.
NAME: Final = "volumes/pools"
#: Seconds between two readings.
INTERVAL: Final = 5.0


class PoolSource(Protocol):
    """As much of Cinder as is needed."""

    def pools(self) -> list[Pool]:
        """What each back end reported last; blocks."""


async def discover(cinder: PoolSource, store: AsyncStore, now: float) -> None:
    """Put what Cinder reports now in the place of the pools that were known.

    :raises PeerError: when Cinder or Redis is away, or Cinder shows us no pools; then nothing is changed
    """
    try:
        found = await asyncio.to_thread(cinder.pools)
    except CallerError as error:
        raise PeerError(f"cinder's pools cannot be read: {error}") from error
    await store.run(write_pools(store.keys, [replace(one, seen=now) for one in found]))


class PoolDiscovery(Service):
    """Reads pools while this host owns :data:`NAME`."""

    def __init__(
        self,
        cinder: PoolSource,
        store: AsyncStore,
        ownership: Ownership,
        clock: Callable[[], float],
        interval: float = INTERVAL,
    ) -> None:
        self._cinder = cinder
        self._store = store
        self._ownership = ownership
        self._clock = clock
        self._interval = interval

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("discover pools", self._step))

    async def _step(self) -> None:
        if self._ownership.owns(NAME):
            await discover(self._cinder, self._store, self._clock())
        await asyncio.sleep(self._interval)
