"""The change stream: objects that clients changed, as the node's proxy workers report, and the items derived from them.

It also has the objects to which a motif gave new content on this node.
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

#: The most waiting names; the items of further ones are checked when they are read.
_MOST: Final = 100_000
#: Objects that are contracted concurrently, and names that are looked up at once for each.
_AT_ONCE: Final = 4
_NAMES: Final = 250


class ChangedObjects(PeriodicService):
    """A service; :meth:`note` may be called by any green thread.

    :param used: false: nothing is noted
    """

    failure = "objects derived from changed ones are checked when they are read"
    delay = retry = 0.2

    def __init__(self, contractor: OutdatedContractor, used: bool = True) -> None:
        self._contractor = contractor
        self._used = used
        self._waiting: dict[str, None] = {}

    def note(self, names: Iterable[str]) -> None:
        """Add objects that were written or deleted."""
        if self._used:
            self._waiting.update(dict.fromkeys(islice(names, _MOST - len(self._waiting))))

    def contract_outdated(self) -> int:
        """Contract the items derived from some of the waiting objects; return the number of contracted ones."""
        names = list(islice(self._waiting, _AT_ONCE * _NAMES))
        for name in names:
            del self._waiting[name]
        shares = [share for number in range(_AT_ONCE) if (share := names[number::_AT_ONCE])]
        return sum(green.map_concurrently(self._contract, shares, _AT_ONCE))

    def _contract(self, names: Sequence[str]) -> int:
        try:
            return self._contractor.contract(names)
        except SluiceError as error:
            log.warning("objects derived from %d changed ones are checked when they are read: %s", len(names), error)
        except Exception:  # the storage may raise any exception
            log.exception("%s", self.failure)
        return 0

    def step(self) -> float:
        contracted = self.contract_outdated()
        if contracted:
            log.info("%d objects were contracted, since their sources have changed", contracted)
        return self.delay


class NewContentObserver(EventObserver):
    """Forwards names of objects with new content, and reports events.

    :param changed: called with the names of objects whose bytes have changed
    """

    def __init__(self, report: ReportEvent, templates: Templates, changed: Callable[[Iterable[str]], object]) -> None:
        super().__init__(report)
        self._templates = templates
        self._changed = changed

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        """Forward the name unless the motif is exact: then a source has changed, which was reported then."""
        if not is_exact(motif, view.name, self._templates):
            self._changed([view.name])
