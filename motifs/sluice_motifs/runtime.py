"""The runtime of motifs, with the terms of Carillon (SYSTOR'16, sections 3 and 4.2).

A shim calls ``notify_open`` before an item is read, ``notify_close`` after, and ``notify_delete`` when it was deleted.
Of the runtime's state only ``Leases`` matter for correctness; ``restart`` fills the rest by a scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from sluice_core.describe import Scalar
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_filters.api import check_parameters
from sluice_motifs.contraction.contractor import ALREADY, Contractor
from sluice_motifs.contraction.copies import GRACE, CopySharing, MayShare
from sluice_motifs.contraction.preparation import HEAD
from sluice_motifs.dependencies.attachment_checks import ANOTHER, check_sources, made_from, split_versions
from sluice_motifs.dependencies.freshness import (
    Freshness,
    Templates,
    find_template,
    internal_sources,
    with_motifs,
)
from sluice_motifs.expansion.choice import CheapestFirst
from sluice_motifs.expansion.opening import ExpansionConfig, Observer, Opened, Openings
from sluice_motifs.items import ItemStatistics, ItemTable
from sluice_motifs.storage.leases import HeldLeases
from sluice_motifs.storage.records import MOST_MOTIFS, ItemView, Motif, Record
from sluice_motifs.storage.shim import Leases, Shim, ViewedOnce, find_item

#: How often the lease of an item is tried to attach or detach a motif, and seconds between the tries.
_TRIES: Final = 50
_TRY_AGAIN: Final = 0.1


class Runtime(Observer):
    """Motifs of one storage.

    :param eager: count each open at once
    :param grace: seconds for which unneeded copies stay
    :param may_share: whether the identity that attached a motif may have another item contracted to a shared copy
    """

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        eager: bool = True,
        config: ExpansionConfig | None = None,
        grace: float = GRACE,
        may_share: MayShare = lambda motif, other: True,
    ) -> None:
        config = config or ExpansionConfig()
        self.items = ItemTable(eager)
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._config = config
        self._observer = config.observer
        self._freshness = Freshness(shim, templates)
        self._choice = CheapestFirst(templates, self.items)
        watched = replace(config, observer=self)
        self._openings = Openings(shim, leases, templates, self._choice, watched)
        self._contractor = Contractor(shim, leases, templates, self._note_contraction, grace, config.clock)
        #: Contracted items whose copies others may share, kept for a moment.
        self._sharers: set[str] = set()
        self._sharing = CopySharing(shim, templates, self.attach_motif, self._contractor.contract, may_share)

    def create_motif(self, template: str, params: Mapping[str, Scalar], identity: str = "") -> Motif:
        """Create a motif that can be attached.

        :raises NotFound: when the template is not installed
        :raises CallerError: when a parameter is unknown, missing or out of its range, or cannot work
        """
        kind = find_template(template, self._templates)
        params, versions = split_versions(kind, params)
        checked = check_parameters(kind.info, params)
        given = {name: value for name, value in checked.items() if value is not None}
        kind(given).check()
        return Motif(template, given, identity, versions)

    def attach_motif(self, name: str, motif: Motif) -> None:
        """Attach a motif to an item, which from now on counts as made from its sources as ``attachment`` says.

        :raises NotFound: when the item or a source does not exist
        :raises CallerError: when the item has the motif already, or may not have it
        :raises Conflict: when another process has the item's lease for some seconds
        """
        with HeldLeases(self._leases, self._config.clock) as held:
            self._acquire(held, name)
            view = find_item(self._shim, name)
            record = self.attachment(view, motif)
            if not held.renew() or not self._shim.annotate(view, record):
                raise Conflict(f"`{name}` was written meanwhile")
            self.items.put(name, view.plain.size, not view.contracted)

    def attachment(self, view: ItemView, motif: Motif) -> Record:
        """The record of an item with one more motif.

        The bytes count as made from the present versions of the sources, or from those whose ETags the motif names.

        :raises NotFound: when a source does not exist
        :raises CallerError: when it has the motif already, or may not have it
        """
        if motif in view.record.motifs:
            raise CallerError(f"`{view.name}` has this motif of template `{motif.template}` already")
        if len(view.record.motifs) >= MOST_MOTIFS:
            raise CallerError(f"`{view.name}` has {MOST_MOTIFS} motifs, and may not have more")
        check_sources(view, motif, self._shim, self._templates)
        attached = Record((*view.record.motifs, motif), view.record.made_from)
        views = ViewedOnce(self._shim)
        state = Freshness(views, self._templates).check_sources(replace(view, record=attached))
        names = internal_sources(motif, view.name, self._templates)
        missing = state.gone.intersection(names)
        if missing:
            raise NotFound(f"source `{min(missing)}` does not exist")
        versions = made_from(view.name, motif, state, views, self._templates)
        changed = {name: version for name, version in versions.items() if version == ANOTHER}
        record = Record(attached.motifs, {**versions, **view.record.made_from, **changed})
        record.encode()  # raises an error for a record that is too long, on any storage
        return record

    def detach_motif(self, name: str, motif: Motif) -> None:
        """Detach a motif from an item; without another motif, make the bytes of a contracted item before.

        :raises NotFound: when the item does not exist, or has no such motif
        :raises ExpansionError: when its bytes cannot be made
        :raises Conflict: when it was written meanwhile
        """
        view = find_item(self._shim, name)
        if not any(map(motif.is_same, view.record.motifs)):
            raise NotFound(f"`{name}` has no such motif of template `{motif.template}`")
        if view.contracted:
            self.expand(name)
        with HeldLeases(self._leases, self._config.clock) as held:
            self._acquire(held, name)
            view = find_item(self._shim, name)
            motifs = tuple(one for one in view.record.motifs if not one.is_same(motif))
            record = with_motifs(view, motifs, self._templates)
            if view.contracted or not held.renew() or not self._shim.annotate(view, record):
                raise Conflict(f"`{name}` was written or contracted meanwhile")
            if not motifs:
                self.items.remove(name)

    def _acquire(self, held: HeldLeases, name: str) -> None:
        """Acquire the lease of an item; an expansion that has just stored its bytes may hold it for a moment."""
        for _ in range(_TRIES):
            if held.acquire({name}):
                return
            self._config.pause(_TRY_AGAIN)
        raise Conflict(f"another process changes `{name}`")

    def notify_open(
        self, name: str, chain: tuple[str, ...] = (), needed: bool = False, sources: Sequence[str] = ()
    ) -> Opened:
        """Open an item before it is read, as ``Openings.open`` does."""
        opened = self._openings.open(name, chain, needed=needed, sources=sources)
        self.items.note_open(name, self._config.clock())
        return opened

    def notify_close(self, opened: Opened) -> None:
        """Close an item that was opened by :meth:`notify_open`."""
        opened.close()

    def notify_delete(self, name: str) -> None:
        """Remove a deleted item from the table; the storage need not call this."""
        self.items.remove(name)

    @contextmanager
    def copying(self, name: str, to: str) -> Iterator[ItemView]:
        """Context in which an item is copied without its bytes, as ``Contractor.copying``."""
        with self._contractor.copying(name, to) as seen:
            yield seen
        self.items.put(to, seen.plain.size, expanded=False)

    def expand(self, name: str) -> None:
        """Make the bytes of an item and wait until they are stored.

        :raises NotFound: when the item does not exist
        :raises ExpansionError: when they cannot be made, or stored
        """
        opened = self._openings.open(name)
        try:
            if opened.expansion is not None:
                opened.expansion.stream.wait()
                self._openings.active.wait(opened.expansion)
        finally:
            opened.close()

    def contract(self, name: str, verify: str = HEAD) -> str:
        """Contract an item, as ``Contractor.contract`` does."""
        try:
            outcome = self._contractor.contract(name, verify)
        except CallerError:
            view = self._shim.view(name)
            if view is None or not view.record.motifs:  # deleted, or written again, without a report
                self.items.remove(name)
            raise
        if outcome == ALREADY:
            view = self._shim.view(name)
            if view is not None:
                self.items.put(name, view.plain.size, not view.contracted)
        if name in self._sharers:
            self._sharers.discard(name)
            self._sharing.share(name)
        return outcome

    def obstacle(self, name: str) -> str:
        """Return why an item must not be contracted, as ``Contractor.obstacle`` does."""
        return self._contractor.obstacle(name)

    def statistics(self, name: str) -> ItemStatistics:
        """The statistics of an item.

        :raises NotFound: when the table does not have it
        """
        known = self.items.statistics(name)
        if known is None:
            raise NotFound(f"nothing is known of an item `{name}`")
        return known

    def restart(self, complete: bool = True) -> int:
        """Fill the table by a scan of the storage; return the number of items.

        :param complete: whether the scan sees all of the storage
        """
        self.items.begin_scan()
        for view in self._shim.scan():
            self.items.put(view.name, view.plain.size, not view.contracted)
        self.items.finish_scan(complete)
        return len(self.items)

    # Observer of expansions

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        self._note_expanded(view)
        self.items.note_expansion(view.name, seconds)
        self._choice.record(motif.template, view.plain.size, seconds)
        self._observer.expanded(view, motif, seconds)

    def failed(self, view: ItemView, reason: str) -> None:
        self._observer.failed(view, reason)

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        if len(motifs) == len(view.record.motifs):
            self.items.remove(view.name)
        self._observer.detached(view, motifs, sources)

    def _note_expanded(self, view: ItemView) -> None:
        """Record that the bytes of an item were made and probably stored; a shim may override it."""
        self.items.put(view.name, view.plain.size, expanded=True)

    def _note_contraction(self, view: ItemView) -> None:
        self.items.put(view.name, view.plain.size, expanded=False)
        if self._sharing.concerns(view):
            self._sharers.add(view.name)
