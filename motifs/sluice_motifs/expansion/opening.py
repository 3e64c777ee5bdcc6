"""Opening an item: it has its bytes, or they are made while the opener reads.

An open views the item and the versions of its sources, concurrently if the caller names these.  When the item is
contracted or stale, the opener joins the running expansion of this process, if no version has
changed since that began; or begins one under the item's lease.  While another process holds the lease, the opener waits
for the result.

A motif whose source no longer exists is detached when the item has its bytes, which exist nowhere else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.messages.events import MOTIF_DETACHED, MOTIF_MISMATCH
from sluice_core.process.logs import with_log_fields
from sluice_motifs.api import ExpansionError
from sluice_motifs.dependencies.freshness import Freshness, SourceState, Templates
from sluice_motifs.expansion.calls import OTHER_BYTES
from sluice_motifs.expansion.expander import Choice, Expander, in_written_order
from sluice_motifs.expansion.shared_stream import STALLED, ActiveExpansion, ActiveExpansions, SharedStream
from sluice_motifs.expansion.turns import Turns
from sluice_motifs.storage.leases import Renewal, release
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Lease, Leases, Shim, ViewedOnce, find_item

log = logging.getLogger(__name__)

#: Seconds between two views of an item that another process expands.
RETRY_INTERVAL: Final = 0.1
#: Seconds for which an opener waits for another process, or for a free place.
PATIENCE: Final = 60.0
#: Seconds after which an expansion is aborted.
LONGEST: Final = 3600.0

#: Reports an event: its kind (``sluice_core.messages.events``), its space or item, and a text.
ReportEvent = Callable[[str, str, str], object]


class Observer:
    """The contract of observers of expansions; the base class does nothing."""

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        """A motif made an item."""

    def failed(self, view: ItemView, reason: str) -> None:
        """Called when no motif made an item."""

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        """Motifs were detached, since these sources no longer exist."""


class EventObserver(Observer):
    """Reports events for operators: motifs whose sources no longer exist, and motifs that made other bytes."""

    def __init__(self, report: ReportEvent) -> None:
        self._report = report

    def failed(self, view: ItemView, reason: str) -> None:
        """Report a failure only when a motif made other bytes: an unreachable source may return."""
        if OTHER_BYTES in reason:
            self._report(MOTIF_MISMATCH, view.name, reason)

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        templates = ", ".join(f"`{one.template}`" for one in motifs)
        gone = ", ".join(f"`{one}`" for one in sorted(sources))
        self._report(
            MOTIF_DETACHED, view.name, f"{templates} of `{view.name}` is detached: {gone} does not exist any more"
        )


@dataclass(slots=True)
class Opened:
    """An open item; close it.

    :param view: the item's state, or that at the begin of its expansion
    :param expansion: makes its bytes; None when the item has them
    """

    view: ItemView
    expansion: ActiveExpansion | None
    _openings: Openings

    def same(self) -> bool:
        """Whether its bytes are those that ``view`` describes, and not new content; wait for the first of them.

        New content has another size, so a range of it waits for the whole (``expansion.stream.wait``).

        :raises ExpansionError: when they cannot be made
        """
        return self.expansion is None or self.expansion.stream.same()

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes that are being made, or those from ``start`` to before ``stop``, as soon as they are made.

        :raises ExpansionError: when they cannot be made, or the item has them
        """
        if self.expansion is None:
            raise ExpansionError(f"the bytes of `{self.view.name}` are in their place")
        return self.expansion.stream.read(start, stop)

    def close(self) -> None:
        """Close the item after reading."""
        if self.expansion is not None:
            self._openings.active.leave(self.expansion)
            self.expansion = None


@dataclass(frozen=True, slots=True)
class ExpansionConfig:
    """The collaborators and limits of expansions.

    :param spawn: runs a function concurrently with the caller
    :param pause: waits for a number of seconds
    :param turns: limits concurrent expansions; those that other expansions wait for need no turn
    :param stalled: seconds without a byte after which a template is aborted
    """

    spawn: Callable[[Callable[[], None]], object] = field(default=lambda work: _thread(work))
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    turns: Turns | None = None
    stalled: float = STALLED
    observer: Observer = field(default_factory=Observer)


class Openings:
    """Opens items."""

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        choose: Choice = in_written_order,
        config: ExpansionConfig | None = None,
    ) -> None:
        self.active = ActiveExpansions()
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._freshness = Freshness(shim, templates)
        self._expander = Expander(shim, templates, choose)
        self._config = config or ExpansionConfig()

    def open(
        self,
        name: str,
        chain: tuple[str, ...] = (),
        patience: float = PATIENCE,
        needed: bool = False,
        sources: Sequence[str] = (),
    ) -> Opened:
        """Open an item that has its bytes, or whose bytes are being made.

        :param chain: the items whose expansions wait for this one, outermost first
        :param patience: seconds to wait for an expansion by another process
        :param needed: the item is contracted or stale, as far as the opener knows; so its lease is acquired before the
            first view, which saves a view
        :param sources: its sources, as far as the opener knows; if it is ``needed``, they are viewed concurrently with
            it
        :raises NotFound: when the item does not exist
        :raises ExpansionError: when another process takes longer, or its sources cannot be viewed
        """
        end = self._config.clock() + patience
        if needed and name not in chain and not self.active.has(name):
            lease = self._acquire(name)
            if lease is not None and (opened := self._begin(name, lease, chain, end, sources)) is not None:
                return opened
        while True:
            view, state = self._view(name)
            if not view.contracted and not state.stale:
                return Opened(view, None, self)
            if name in chain:
                raise ExpansionError(f"`{name}` would be needed to make itself")
            joined = self.active.join(name)
            if joined is not None and joined.serves(view, state):
                return Opened(joined.view, joined, self)
            if joined is not None:
                if joined.stream.failed:
                    self.active.forget(joined)
                self.active.leave(joined)
            else:
                lease = self._acquire(name)
                if lease is not None and (opened := self._begin(name, lease, chain, end)) is not None:
                    return opened
                if lease is not None:
                    continue  # another opener was faster
            if self._config.clock() >= end:
                raise ExpansionError(f"another process makes `{name}`, and has not finished within {patience:g} s")
            self._config.pause(RETRY_INTERVAL)

    def _acquire(self, name: str) -> Lease | None:
        try:
            return self._leases.acquire(name)
        except PeerError as error:
            log.warning("`%s` is made without a lease: %s", name, error)
            return Lease(name, 0)

    def _begin(
        self, name: str, lease: Lease, chain: tuple[str, ...], end: float, sources: Sequence[str] = ()
    ) -> Opened | None:
        """Begin an expansion under the lease; return None when another opener was faster."""
        turns = None if chain else self._config.turns
        begun = False
        if turns is not None and not turns.acquire(name, max(0.0, end - self._config.clock())):
            release(self._leases, lease)
            raise ExpansionError(f"`{name}` cannot be made: too many others are being made")
        try:
            view, state = self._view_at_once(name, sources) or self._view(name)
            if not view.contracted and not state.stale:
                return None
            active = ActiveExpansion(view, state, SharedStream(self._config.stalled))
            self.active.begin(active)
            begun = True
        finally:
            if not begun:
                release(self._leases, lease)
                if turns is not None:
                    turns.release(name)
        self._config.spawn(with_log_fields(lambda: self._make(active, lease, chain, turns)))
        return Opened(view, active, self)

    def _make(
        self,
        active: ActiveExpansion,
        lease: Lease,
        chain: tuple[str, ...],
        turns: Turns | None,
    ) -> None:
        start = self._config.clock()
        renewal = Renewal(lambda: self._leases.renew(lease), self._config.clock)

        def alive() -> None:
            renewal()
            if self._config.clock() > start + LONGEST:
                raise ExpansionError(f"it was not made within {LONGEST:g} s")

        try:
            motif = self._expander.expand(active.view, active.state, active.stream, chain, alive)
        except ExpansionError as error:
            log.warning("%s", error)
            self._config.observer.failed(active.view, f"{error}")
        else:
            self._config.observer.expanded(active.view, motif, self._config.clock() - start)
        finally:
            active.stream.fail(ExpansionError(f"`{active.view.name}` cannot be made again"))  # a bug in the runtime
            self.active.end(active)
            release(self._leases, lease)
            if turns is not None:
                turns.release(active.view.name)

    def _view_at_once(self, name: str, sources: Sequence[str]) -> tuple[ItemView, SourceState] | None:
        """View an item and its sources concurrently; return None when these are unknown, or the item does not exist."""
        views = ViewedOnce(self._shim)
        view = views.view_all((name, *sources))[0] if sources else None
        return None if view is None else (view, Freshness(views, self._templates).check_sources(view))

    def _view(self, name: str) -> tuple[ItemView, SourceState]:
        """View an item and its sources; detach motifs whose sources no longer exist while it has its bytes."""
        while True:
            view = find_item(self._shim, name)
            state = self._freshness.check_sources(view)
            if view.contracted or not state.gone:
                return view, state
            record = self._freshness.without(view, state.gone)
            if self._shim.annotate(view, record):
                lost = tuple(one for one in view.record.motifs if one not in record.motifs)
                self._config.observer.detached(view, lost, state.gone)


def _thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="expansion", daemon=True).start()
