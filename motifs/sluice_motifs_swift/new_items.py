"""Finds objects in the storage after clients attached motifs to them or changed them, so that spaces know them.

A client's PUT is judged by the daemon before the object is written, and the proxy writes it.  So the object is looked
at some times afterwards, until it is there with its motifs.  One that is known and that a client wrote or deleted is
looked at once, and forgotten when its motifs are gone.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.records import Record
from sluice_motifs.storage.shim import Shim
from sluice_motifs_swift.daemon import GreenService

log = logging.getLogger(__name__)

#: Seconds between the looks at an object.
_PAUSES: Final = (1.0, 3.0, 10.0, 60.0, 600.0)
#: Objects that are waited for; others are found by the next scan.
_MOST: Final = 100_000
_SLICE: Final = 1.0


class NewItems(GreenService):
    """A service; :meth:`note` may be called by any green thread.

    :param found: told of an object that is there with its motifs, and of their record; what was noted before it was
        written may have been forgotten since
    """

    def __init__(self, runtime: Runtime, shim: Shim, found: Callable[[str, Record], object]) -> None:
        self._runtime = runtime
        self._shim = shim
        self._found = found
        self._waiting: list[tuple[float, int, str]] = []
        self._now = 0.0

    def note(self, name: str) -> None:
        """Motifs are being attached to an object."""
        if len(self._waiting) < _MOST:
            heapq.heappush(self._waiting, (self._now + _PAUSES[0], 0, name))

    def note_change(self, name: str) -> None:
        """A client wrote or deleted an object with motifs."""
        if len(self._waiting) < _MOST:
            heapq.heappush(self._waiting, (self._now + _PAUSES[0], len(_PAUSES) - 1, name))

    def scan_due(self, seconds: float) -> None:
        """Look at the objects whose time has come, so many seconds after the last call."""
        self._now += seconds
        while self._waiting and self._waiting[0][0] <= self._now:
            _, tries, name = heapq.heappop(self._waiting)
            try:
                view = self._shim.view(name)
                if view is None or not view.record.motifs:
                    self._runtime.notify_delete(name)
                else:
                    self._runtime.items.put(name, view.plain.size, not view.contracted)
                    self._found(name, view.record)
            except SluiceError as error:
                log.info("`%s` is looked at later: %s", name, error)
                view = None
            if (view is None or not view.record.motifs) and tries + 1 < len(_PAUSES):
                heapq.heappush(self._waiting, (self._now + _PAUSES[tries + 1], tries + 1, name))

    def _run(self) -> None:
        while True:
            green.pause(_SLICE)
            try:
                self.scan_due(_SLICE)
            except Exception:  # the storage may raise anything
                log.exception("objects with new motifs are not looked at")
