"""What volumes moved lately on each machine, out of the metrics that its konnector counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.volumes.pool_allocator import VolumeLoad
from sluice_core.messages.bandwidth import GET, PUT
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import VOLUME
from sluice_volumes.metrics import VOLUME_READ_BW, VOLUME_WRITE_BW

#: Metric → the method that stands for it in the allocation.
METHODS: Final[Mapping[str, str]] = {VOLUME_READ_BW: GET, VOLUME_WRITE_BW: PUT}
#: A machine that is silent for so many seconds is forgotten; until then it keeps what it had.
FORGET_SECONDS: Final = 30.0


@dataclass(slots=True)
class _Machine:
    arrived: float
    window: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)


class VolumeLoads:
    """The last window of each machine and metric."""

    def __init__(self) -> None:
        self._machines: dict[tuple[str, str], _Machine] = {}

    def feed(self, batch: MetricBatch, now: float) -> None:
        """Take a batch of one of :data:`METHODS`, unless it is older than what is known.

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
        found: dict[str, dict[str, list[VolumeLoad]]] = {}
        for node, load, path in self._loads():
            pool = pools.get(path)
            if pool is not None:
                found.setdefault(pool, {}).setdefault(node, []).append(load)
        return found

    def _loads(self) -> Iterator[tuple[str, VolumeLoad, str]]:
        for (node, metric), machine in self._machines.items():
            for path, rate in machine.rates.items():
                account, _, volume = path.partition("/")
                yield node, VolumeLoad(account, volume, METHODS[metric], rate), path

    def _forget(self, now: float) -> None:
        for key in [key for key, one in self._machines.items() if now - one.arrived > FORGET_SECONDS]:
            del self._machines[key]
