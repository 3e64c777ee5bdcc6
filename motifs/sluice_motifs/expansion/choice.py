"""Chooses the cheapest motif of an item: it is tried first, the others are the fall-back.

The cost of a motif is the time that its template took before, per item and byte, longer when the resource that limits
it is busy; plus the time of making its contracted sources.

The load of this machine, from 0 to 1, is that of its CPUs, its busiest disk and its busiest network link.  Each is a
mean since the last reading, and a reading is kept for a second.  A link of unknown speed counts as idle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from sluice_motifs.api import CPU, DISK, NETWORK, ExpansionError
from sluice_motifs.dependencies.freshness import Templates, internal_sources
from sluice_motifs.items import ItemTable
from sluice_motifs.storage.records import ItemView, Motif

#: Seconds for which a reading is kept.
KEPT: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Counters:
    """Growing totals: seconds of all CPUs, busy ones of them, busy seconds by disk, seconds of each link's speed."""

    total: float
    busy: float
    disks: Mapping[str, float]
    links: Mapping[str, float]


class MachineLoads:
    """:param clock: monotonic seconds"""

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


#: The weight of the last value in the mean of a template's times.
_WEIGHT: Final = 0.2
#: The cost of a template without measurements: seconds, and seconds a byte (100 MB/s).
_UNKNOWN: Final = (0.01, 1e-8)
#: The highest utilisation for which this model still makes the waiting time longer.
_BUSIEST: Final = 0.95

#: Utilisation by resource (``api.RESOURCES``), from 0 to 1; a missing one is idle.
Loads = Callable[[], Mapping[str, float]]


class CheapestFirst:
    """Orders motifs by their cost; implements ``Choice``.

    :param loads: utilisation; by default that of this machine
    """

    def __init__(self, templates: Templates, items: ItemTable, loads: Loads | None = None) -> None:
        self._templates = templates
        self._items = items
        self._loads = loads or MachineLoads()
        self._mutex = threading.Lock()
        self._times: dict[str, tuple[float, float]] = {}

    def __call__(self, view: ItemView, motifs: Sequence[Motif]) -> Sequence[Motif]:
        if len(motifs) < 2:
            return motifs
        loads = self._loads()
        return sorted(motifs, key=lambda motif: self._cost(view, motif, loads))

    def record(self, template: str, size: int, seconds: float) -> None:
        """Record that a template made this many bytes."""
        with self._mutex:
            fixed, each = self._times.get(template, _UNKNOWN)
            error = seconds - fixed - each * size
            # the time of a short item is mostly the fixed part, that of a long one the part by bytes
            share = each * size / (fixed + each * size)
            fixed = max(1e-6, fixed + _WEIGHT * error * (1 - share))
            each = max(1e-12, each + _WEIGHT * error * share / max(size, 1))
            self._times[template] = (fixed, each)

    def _cost(self, view: ItemView, motif: Motif, loads: Mapping[str, float]) -> float:
        kind = self._templates.get(motif.template)
        if kind is None:
            return float("inf")
        fixed, each = self._times.get(motif.template, _UNKNOWN)
        busy = min(max(loads.get(kind.resource, 0.0), 0.0), _BUSIEST)
        try:
            sources = internal_sources(motif, view.name, self._templates)
        except ExpansionError:
            return float("inf")
        return (fixed + each * view.plain.size) / (1 - busy) + sum(map(self._source_cost, sources))

    def _source_cost(self, name: str) -> float:
        known = self._items.statistics(name)
        if known is None or known.expanded:
            return 0.0
        return known.expansion_seconds or _UNKNOWN[0] + _UNKNOWN[1] * known.size
