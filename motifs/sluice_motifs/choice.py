"""Which motif of an item is the cheapest now: it is tried first, the others are the fall-back.

The cost of a motif is the time that its template took before, per item and byte, longer where what it waits for is
busy; and the time of making its sources that are contracted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sluice_motifs.api import ExpansionError
from sluice_motifs.dependencies.freshness import Templates, internal_sources
from sluice_motifs.expansion.loads import MachineLoads
from sluice_motifs.items import ItemTable
from sluice_motifs.storage.records import ItemView, Motif

#: How much of the mean of a template's times is the last one.
_WEIGHT: Final = 0.2
#: What a template takes of which nobody knows: seconds, and seconds a byte (100 MB/s).
_UNKNOWN: Final = (0.01, 1e-8)
#: The utilisation from which on waiting does not get longer in this reckoning.
_BUSIEST: Final = 0.95

#: Utilisation by resource (``api.RESOURCES``), from 0 to 1; what is missing is idle.
Loads = Callable[[], Mapping[str, float]]


class CheapestFirst:
    """Orders motifs by their cost; implements ``Choice``.

    :param loads: those of this machine where none are given
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
        """A template made so many bytes."""
        with self._mutex:
            fixed, each = self._times.get(template, _UNKNOWN)
            error = seconds - fixed - each * size
            # the part of a short item is the fixed one, of a long one that of its bytes
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
