"""How busy this machine is with what templates wait for, from 0 to 1: its CPUs, its busiest disk and network link.

Each is a mean since the look before, and a look is kept for a second.  A link whose speed is unknown counts as idle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import psutil

from sluice_motifs.api import CPU, DISK, NETWORK

#: Seconds for which a look is kept.
KEPT: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Counters:
    """What grows: seconds of all CPUs, busy ones of them, busy seconds by disk, seconds of each link's speed."""

    total: float
    busy: float
    disks: Mapping[str, float]
    links: Mapping[str, float]


class MachineLoads:
    """:param clock: seconds; never goes back"""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._at = clock()
        self._counters = _read()
        self._loads: Mapping[str, float] = {}

    def __call__(self) -> Mapping[str, float]:
        """Utilisation by resource (``api.RESOURCES``)."""
        with self._mutex:
            now = self._clock()
            if now - self._at >= KEPT:
                before, self._counters = self._counters, _read()
                self._loads = _loads(before, self._counters, now - self._at)
                self._at = now
            return self._loads


def _loads(before: _Counters, after: _Counters, seconds: float) -> Mapping[str, float]:
    def busiest(old: Mapping[str, float], new: Mapping[str, float]) -> float:
        return max((new[name] - old[name] for name in new.keys() & old.keys()), default=0.0) / seconds

    total = after.total - before.total
    return {
        CPU: (after.busy - before.busy) / total if total > 0 else 0.0,
        DISK: busiest(before.disks, after.disks),
        NETWORK: busiest(before.links, after.links),
    }


def _read() -> _Counters:
    times = psutil.cpu_times()
    # time of guests is part of that of users
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    disks = psutil.disk_io_counters(perdisk=True) or {}
    links = psutil.net_io_counters(pernic=True)
    speeds = {name: 125_000.0 * one.speed for name, one in psutil.net_if_stats().items() if one.isup and one.speed > 0}
    return _Counters(
        total,
        total - times.idle - getattr(times, "iowait", 0.0),
        {name: getattr(one, "busy_time", 0) / 1000 for name, one in disks.items()},
        {
            name: max(links[name].bytes_sent, links[name].bytes_recv) / speed
            for name, speed in speeds.items()
            if name in links
        },
    )
