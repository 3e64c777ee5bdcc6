"""The change stream: objects that clients changed, as the node's proxy workers report, and what is derived from them.

It has the objects that a motif gave new content here, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green
from sluice_motifs.contraction.outdated import OutdatedContractor
from sluice_motifs.dependencies.freshness import Templates, is_exact
from sluice_motifs.expansion.opening import EventObserver, ReportEvent
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs_swift.daemon import PeriodicService

log = logging.getLogger(__name__)

#: Names that wait; names beyond these are found when they are read.
_MOST: Final = 100_000
#: Objects that give up their bytes at a time, and names that are asked for in one go for each.
_AT_ONCE: Final = 4
_NAMES: Final = 250


class ChangedObjects(PeriodicService):
    """A service; :meth:`note` may be called by any green thread.

    :param used: false: nothing is noted
    """

    failure = "what is derived from changed objects is looked at when it is read"
    delay = retry = 0.2

    def __init__(self, contractor: OutdatedContractor, used: bool = True) -> None:
        self._contractor = contractor
        self._used = used
        self._waiting: dict[str, None] = {}

    def note(self, names: Iterable[str]) -> None:
        """These objects were written or deleted."""
        if self._used:
            self._waiting.update(dict.fromkeys(islice(names, _MOST - len(self._waiting))))

    def contract_outdated(self) -> int:
        """Contract what is derived from some of the objects that wait; returns how many gave up their bytes."""
        names = list(islice(self._waiting, _AT_ONCE * _NAMES))
        for name in names:
            del self._waiting[name]
        shares = [share for number in range(_AT_ONCE) if (share := names[number::_AT_ONCE])]
        return sum(green.map_concurrently(self._contract, shares, _AT_ONCE))

    def _contract(self, names: Sequence[str]) -> int:
        try:
            return self._contractor.contract(names)
        except SluiceError as error:
            log.warning("what is derived from %d changed objects is looked at when it is read: %s", len(names), error)
        except Exception:  # the storage may raise anything
            log.exception("%s", self.failure)
        return 0

    def step(self) -> float:
        contracted = self.contract_outdated()
        if contracted:
            log.info("%d objects gave up their bytes, since what they are derived from has changed", contracted)
        return self.delay


class NewContentObserver(EventObserver):
    """Passes on names of objects with new content, and reports events.

    :param changed: takes the names of objects that have other bytes than before
    """

    def __init__(self, report: ReportEvent, templates: Templates, changed: Callable[[Iterable[str]], object]) -> None:
        super().__init__(report)
        self._templates = templates
        self._changed = changed

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        """An exact motif makes new content only after a source has changed, which was reported then."""
        if not is_exact(motif, view.name, self._templates):
            self._changed([view.name])
