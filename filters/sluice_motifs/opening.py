"""Opening an item: its bytes are there, or are made while the opener reads.

An open looks at the item and at the versions of its sources.  When its bytes are gone or out of date, the opener joins
the expansion that is under way in this process, or begins one under the item's lease.  While another process holds the
lease, the opener waits for what comes of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import NotFound, SluiceError
from sluice_motifs.active import ActiveExpansion, ActiveExpansions
from sluice_motifs.api import ExpansionError
from sluice_motifs.expansion import Choice, Expander
from sluice_motifs.freshness import is_stale
from sluice_motifs.graph import Templates
from sluice_motifs.leases import Renewal
from sluice_motifs.records import ItemView
from sluice_motifs.shim import Lease, Leases, Shim

log = logging.getLogger(__name__)

#: Seconds between two looks at an item that another process expands.
LOOK_AGAIN: Final = 0.1
#: Seconds for which an opener waits for another process.
PATIENCE: Final = 60.0


@dataclass(slots=True)
class Opened:
    """An open item; close it.

    :param view: what it is
    :param expansion: where its bytes come from; None when they are in their place
    """

    view: ItemView
    expansion: ActiveExpansion | None
    _openings: Openings

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Its plain bytes, or those from ``start`` to before ``stop``.

        :raises ExpansionError: when they cannot be made
        """
        if self.expansion is None:
            raise ExpansionError(f"the bytes of `{self.view.name}` are in their place")
        return self.expansion.stream.read(start, stop)

    def close(self) -> None:
        """Read no more."""
        if self.expansion is not None:
            self._openings.active.leave(self.expansion)
            self.expansion = None


class Openings:
    """Opens items.

    :param spawn: runs a function beside the caller, in a thread say
    :param pause: waits so many seconds
    """

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        choose: Choice = lambda view: view.record.motifs,
        spawn: Callable[[Callable[[], None]], object] = lambda work: work(),
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.active = ActiveExpansions()
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._expander = Expander(shim, templates, choose)
        self._spawn = spawn
        self._pause = pause
        self._clock = clock

    def open(self, name: str, chain: tuple[str, ...] = (), patience: float = PATIENCE) -> Opened:
        """The item with its bytes there or on their way.

        :param chain: the items whose expansions wait for this one, outermost first
        :param patience: seconds to wait for an expansion by another process
        :raises NotFound: when there is none
        :raises ExpansionError: when another process takes longer
        """
        end = self._clock() + patience
        while True:
            joined = self.active.join(name)
            if joined is not None:
                return Opened(joined.view, joined, self)
            view = self._find(name)
            if self._is_there(view):
                return Opened(view, None, self)
            lease = self._leases.acquire(name)
            if lease is not None:
                opened = self._begin(name, lease, chain)
                if opened is not None:
                    return opened
            elif self._clock() >= end:
                raise ExpansionError(f"`{name}` is being made elsewhere, and not within {patience:g} s")
            else:
                self._pause(LOOK_AGAIN)

    def _begin(self, name: str, lease: Lease, chain: tuple[str, ...]) -> Opened | None:
        """Begin an expansion under the lease; None when somebody was faster."""
        try:
            began = self._shim.now()
            view = self._find(name)
            if self._is_there(view):
                self._leases.release(lease)
                return None
            active = self.active.begin(view)
        except BaseException:
            self._leases.release(lease)
            raise
        self._spawn(lambda: self._make(active, lease, began, chain))
        return Opened(view, active, self)

    def _make(self, active: ActiveExpansion, lease: Lease, began: str, chain: tuple[str, ...]) -> None:
        renewal = Renewal(self._leases, lease, self._clock)
        try:
            self._expander.expand(active.view, began, active.stream, chain, renewal)
        except SluiceError as error:
            log.warning("%s", error)
        finally:
            self.active.end(active)
            self._leases.release(lease)

    def _find(self, name: str) -> ItemView:
        view = self._shim.view(name)
        if view is None:
            raise NotFound(f"there is no item `{name}`")
        return view

    def _is_there(self, view: ItemView) -> bool:
        return not view.contracted and not is_stale(self._shim, view, self._templates)
