"""Keeps the table of the runtime complete: by scans, and by views of objects that clients changed.

A scan runs after the start, and after Redis has lost its data.  Correctness does not depend on the table: it gives
spaces their items, and the items of an expansion of everything.  A running daemon writes its items to Redis again; a
walk over the accounts of the cluster finds the rest.

The daemon checks a client's PUT with motifs before the proxy writes the object.  So the object is viewed several
times afterwards, until it exists with its motifs.  A known object that a client wrote or deleted is viewed once,
and removed if it has no motifs.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.records import Record
from sluice_motifs.storage.shim import Shim
from sluice_motifs_swift.daemon import PeriodicService
from sluice_motifs_swift.objects.item_index import is_complete, set_complete
from sluice_rewrites.accounts import close_request, new_request, open_request, read_collection

log = logging.getLogger(__name__)

#: Seconds between two checks whether a scan is needed, and after a scan that did not see all accounts.
_INTERVAL: Final = 2.0
_TRY_AGAIN: Final = 600.0
#: Seconds between the views of an object.
_PAUSES: Final = (1.0, 3.0, 10.0, 60.0, 600.0)
#: The most objects that are waited for; the next scan finds others.
_MOST: Final = 100_000
_SLICE: Final = 1.0


class Scan(PeriodicService):
    """A service: scans the storage for objects with motifs when not all of them are known."""

    failure = "the scan for objects with motifs does not run"
    retry = _INTERVAL

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime

    def step(self) -> float:
        keys, items = self._store.keys, self._runtime.items
        complete = self._store.run(is_complete(keys))
        if complete and items.complete:
            return _INTERVAL
        problem = "" if complete else self._collect_accounts()
        count = self._runtime.restart(complete=not problem)
        if problem:
            log.warning("%d objects have motifs, and there may be more: %s", count, problem)
            return _TRY_AGAIN
        self._store.run(set_complete(keys))
        log.info("%d objects have motifs", count)
        return _INTERVAL

    def _collect_accounts(self) -> str:
        """Wait until all accounts are in the list; return why they are not, or an empty text."""
        keys, request = self._store.keys, new_request()
        self._store.run(open_request(keys, request))
        try:
            while True:
                collection = self._store.run(read_collection(keys, request))
                if collection.is_complete or collection.problem:
                    return collection.problem
                green.pause(_INTERVAL)
        finally:
            self._store.run(close_request(keys, request))


class NewItems(PeriodicService):
    """A service: views objects to which clients attach motifs; :meth:`note` may be called by any green thread.

    :param on_item: called with the name of an object that exists with its motifs, and its record; an entry made before
        it was written may have been removed since
    """

    failure = "objects with new motifs are not checked"
    delay = retry = _SLICE

    def __init__(self, runtime: Runtime, shim: Shim, on_item: Callable[[str, Record], object]) -> None:
        self._runtime = runtime
        self._shim = shim
        self._on_item = on_item
        self._waiting: list[tuple[float, int, str]] = []
        self._now = 0.0

    def note(self, name: str) -> None:
        """Add an object to which motifs are being attached."""
        if len(self._waiting) < _MOST:
            heapq.heappush(self._waiting, (self._now + _PAUSES[0], 0, name))

    def note_change(self, name: str) -> None:
        """Add an object with motifs that a client wrote or deleted."""
        if len(self._waiting) < _MOST:
            heapq.heappush(self._waiting, (self._now + _PAUSES[0], len(_PAUSES) - 1, name))

    def scan_due(self, seconds: float) -> None:
        """View the objects that are due, this many seconds after the last call."""
        self._now += seconds
        while self._waiting and self._waiting[0][0] <= self._now:
            _, tries, name = heapq.heappop(self._waiting)
            try:
                view = self._shim.view(name)
                if view is None or not view.record.motifs:
                    self._runtime.notify_delete(name)
                else:
                    self._runtime.items.put(name, view.plain.size, not view.contracted)
                    self._on_item(name, view.record)
            except SluiceError as error:
                log.info("`%s` is checked later: %s", name, error)
                view = None
            if (view is None or not view.record.motifs) and tries + 1 < len(_PAUSES):
                heapq.heappush(self._waiting, (self._now + _PAUSES[tries + 1], tries + 1, name))

    def step(self) -> float:
        self.scan_due(_SLICE)
        return _SLICE
