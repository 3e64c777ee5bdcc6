"""Divides the capacity of pools among volumes with floors, and sends each machine the shares of its volumes.

One host of the cluster does this, the one that owns :data:`NAME`, each second, after the metrics of the last second
have arrived.  Konnectors hold volumes to their shares.  The capacity of a pool that was never calibrated is not known:
floors of its volumes have no effect, and an event reports that.  While Redis is unreachable the assignments that were
read last hold; while the broker is unreachable machines keep their shares.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn, owned_term, repeat_forever
from sluice_actors.volumes.kept_assignments import KeptAssignments
from sluice_actors.volumes.pool_allocator import PoolAllocator, VolumeLoad, is_volume_bandwidth
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import (
    BANDWIDTH_EXCHANGE,
    METRICS_EXCHANGE,
    metric_routing_key,
    volume_shares_routing_key,
)
from sluice_core.connections.publisher import Publisher
from sluice_core.messages.bandwidth import GET, PUT, Share, Shares
from sluice_core.messages.events import FLOOR_SHORT
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import VOLUME, Change
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.messages import PoolCalibration
from sluice_volumes.metrics import VOLUME_READ_BW, VOLUME_WRITE_BW

log = logging.getLogger(__name__)

#: Metric → the corresponding method of the allocation.
METHODS: Final[Mapping[str, str]] = {VOLUME_READ_BW: GET, VOLUME_WRITE_BW: PUT}
#: A machine that is silent for this many seconds is forgotten; until then it keeps its shares.
FORGET_SECONDS: Final = 30.0


@dataclass(slots=True)
class _Machine:
    arrived: float
    window: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)


class VolumeLoads:
    """The last rates of volumes on each machine: the last window of each metric that its konnector counts."""

    def __init__(self) -> None:
        self._machines: dict[tuple[str, str], _Machine] = {}

    def feed(self, batch: MetricBatch, now: float) -> None:
        """Add a batch of one of :data:`METHODS`, unless it is older than the last one.

        :param now: seconds on a monotonic clock
        """
        known = self._machines.setdefault((batch.node, batch.metric), _Machine(now))
        if batch.window >= known.window or now - known.arrived > FORGET_SECONDS:
            known.arrived, known.window, known.rates = now, batch.window, batch.values.get(VOLUME, {})

    def machines(self, now: float) -> set[str]:
        """The machines that have reported lately."""
        self._forget(now)
        return {node for node, _ in self._machines}

    def by_pool(self, pools: Mapping[str, str], now: float) -> dict[str, dict[str, list[VolumeLoad]]]:
        """Pool → machine → the loads of its volumes.

        :param pools: path of a volume → its pool
        """
        self._forget(now)
        loads: dict[str, dict[str, list[VolumeLoad]]] = {}
        for node, load, path in self._loads():
            pool = pools.get(path)
            if pool is not None:
                loads.setdefault(pool, {}).setdefault(node, []).append(load)
        return loads

    def _loads(self) -> Iterator[tuple[str, VolumeLoad, str]]:
        for (node, metric), machine in self._machines.items():
            for path, rate in machine.rates.items():
                account, _, volume = path.partition("/")
                yield node, VolumeLoad(account, volume, METHODS[metric], rate), path

    def _forget(self, now: float) -> None:
        for key in [key for key, one in self._machines.items() if now - one.arrived > FORGET_SECONDS]:
            del self._machines[key]


#: The name under which the dividing host owns its work.
NAME: Final = "volumes/floors"
#: The source of its events, whichever host divides.
SOURCE: Final = "volumes"
#: Seconds after the end of a second until its metrics have arrived; agents publish them within 0.1 s.
_DELAY: Final = 0.3
#: Seconds after which volumes and calibrations are read again.
_READ_AGAIN: Final = 5.0
#: Of the rounds without any share, one in this many is published.
_QUIET_INTERVAL: Final = 5
_MAX_QUEUED, _TTL = 1000, 5.0


class VolumeFloors(Service):
    """Divides pools while this host owns :data:`NAME`.

    :param settings: of the host
    :param groups: the host updates it before it calls :meth:`apply`
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        store: AsyncStore,
        ownership: Ownership,
        groups: GroupIndex,
        clock: Callable[[], float],
        log_event: LogEvent,
    ) -> None:
        self._host: str = settings["host"]
        self._store = store
        self._ownership = ownership
        self._groups = groups
        self._clock = clock
        self._log_event = log_event
        url = settings["amqp_url"]
        self._publisher = Publisher(url, BANDWIDTH_EXCHANGE, limit=_MAX_QUEUED)
        bindings = [metric_routing_key(metric, "*") for metric in METHODS]
        self._consumer = Consumer(url, self.receive, bindings, METRICS_EXCHANGE, max_length=_MAX_QUEUED, ttl=_TTL)
        self._loads = VolumeLoads()
        self._assignments = KeptAssignments(store, is_volume_bandwidth)
        self._read_at = -math.inf
        self._pools: dict[str, str] = {}
        self._calibrations: dict[str, PoolCalibration] = {}
        self._allocators: dict[str, PoolAllocator] = {}
        self._rounds = 0
        #: Pools for which an event has reported that they were never calibrated.
        self._uncalibrated: set[str] = set()

    # -- called by the host

    def start(self, spawn: Spawn) -> None:
        self._publisher.start()
        self._consumer.start()
        spawn(repeat_forever("volume floors", self._step))

    async def close(self) -> None:
        await self._consumer.close()
        await self._publisher.close()

    def reload(self) -> None:
        """Read the assignments anew."""
        self._assignments.reload()

    def apply(self, change: Change) -> None:
        """Apply ``change``, which the groups contain already."""
        if self._assignments.apply(change) or change.entries or change.entry_drops:
            self._set_assignments()

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle the loads of a machine's volumes in the last second."""
        if self._ownership.owns(NAME):
            self._loads.feed(MetricBatch.decode(body), time.monotonic())

    # -- rounds

    async def _step(self) -> None:
        at = self._clock() - _DELAY
        await asyncio.sleep(math.floor(at) + 1.0 - at)
        if not self._ownership.owns(NAME):
            self._assignments.reload()
            self._allocators.clear()
            return
        await self._read()
        now = time.monotonic()
        shares = self._divide(now) if self._assignments.values() else {}
        self._rounds += 1
        # Empty rounds are sent again too: a machine that missed the first one would throttle its volumes for ever.
        if shares or self._rounds % _QUIET_INTERVAL == 0:
            self._publish(shares, {*shares, *self._loads.machines(now)})

    async def _read(self) -> None:
        """
        :raises PeerError: when Redis is unreachable
        """
        keys = self._store.keys
        if await self._assignments.read():
            self._set_assignments()
        if self._assignments.values() and time.monotonic() - self._read_at >= _READ_AGAIN:
            records = await self._store.run(operations.RECORDS.read_all(keys))
            self._calibrations = await self._store.run(operations.CALIBRATIONS.read_all(keys))
            self._pools = {one.path: one.pool for one in records.values() if one.pool}
            self._read_at = time.monotonic()

    def _set_assignments(self) -> None:
        for allocator in self._allocators.values():
            allocator.set_assignments(self._assignments.values())

    def _divide(self, now: float) -> dict[str, list[Share]]:
        """Machine → the shares of its volumes, of all pools."""
        shares: dict[str, list[Share]] = {}
        at = self._clock()
        for pool, machines in self._loads.by_pool(self._pools, now).items():
            calibration, allocator = self._calibrations.get(pool), self._allocator(pool)
            if calibration is None:
                if any(map(allocator.has_floor, chain.from_iterable(machines.values()))):
                    self._note_uncalibrated(pool)
                continue
            self._uncalibrated.discard(pool)
            made = allocator.allocate(calibration, machines, now, at, owned_term(self._ownership, NAME), int(at))
            for node, body in made.messages.items():
                shares.setdefault(node, []).extend(Shares.decode(body).rows)
        return shares

    def _note_uncalibrated(self, pool: str) -> None:
        if pool not in self._uncalibrated:
            self._uncalibrated.add(pool)
            text = f"floors of volumes in pool `{pool}` are not held: it was never calibrated"
            self._log_event(FLOOR_SHORT, text, SOURCE, subject=pool)

    def _allocator(self, pool: str) -> PoolAllocator:
        known = self._allocators.get(pool)
        if known is None:
            known = self._allocators[pool] = PoolAllocator(self._groups, self._host)
            known.set_assignments(self._assignments.values())
        return known

    def _publish(self, shares: Mapping[str, Sequence[Share]], machines: Set[str]) -> None:
        """Send each machine its shares; the list may be empty."""
        if not self._publisher.connected.is_set():
            return
        at = self._clock()
        for node in machines:
            message = Shares(node, owned_term(self._ownership, NAME), int(at), at, tuple(shares.get(node, ())))
            self._publisher.publish(volume_shares_routing_key(node), message.encode())
