"""Expansion of an item: making its bytes.

Motifs are tried in the order of ``choose``, the cheapest first, until one makes the item; verified motifs
before others.

* While the sources have the versions from which the bytes were made, an exact motif must make the very same bytes: size
  and digest decide.  The last piece is held back until they are verified, so no reader takes wrong bytes for whole
  ones, and the storage gets none of them.  Any exact motif may be tried then.
* When a source has changed, only motifs that read it are tried.  Their bytes, and those of an inexact motif, are
  the new content of the item (``Shim.replace``).
* Versions of sources are noted before they are read.  If a source changes while it is read, the noted version is
  older than the bytes, so that the item counts as stale the next time: once too often rather than never.
* Another motif is tried only while no byte has been passed to readers.  All are tried again when a source
  was changed meanwhile.
* Readers get the bytes even if the storage refuses them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain as chain_of
from itertools import islice
from typing import Final

from sluice_core.errors import PeerError, SluiceError
from sluice_motifs.api import COPY, ExpansionError, SourceGone, contained
from sluice_motifs.dependencies.freshness import (
    Freshness,
    SourceState,
    Templates,
    derived_from,
    internal_sources,
    is_exact,
    without_copies,
)
from sluice_motifs.expansion.calls import Call, bounded, pieces_of, proven
from sluice_motifs.expansion.shared_stream import SharedStream
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Shim

log = logging.getLogger(__name__)

#: How often motifs are tried while sources change.
_ROUNDS: Final = 3

#: Sorts motifs of an item into the order in which they are tried.
Choice = Callable[[ItemView, Sequence[Motif]], Sequence[Motif]]


def in_written_order(view: ItemView, motifs: Sequence[Motif]) -> Sequence[Motif]:
    """The choice of hosts that measure no costs."""
    return motifs


class Expander:
    """Expands items; its callers hold their leases."""

    def __init__(self, shim: Shim, templates: Templates, choose: Choice = in_written_order) -> None:
        self._shim = shim
        self._templates = templates
        self._choose = choose
        self._freshness = Freshness(shim, templates)

    def expand(
        self,
        view: ItemView,
        state: SourceState,
        stream: SharedStream,
        chain: tuple[str, ...] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> Motif:
        """Make the bytes of ``view``, for the readers of ``stream`` and the storage; return the motif that made them.

        A client's write meanwhile is newer, and the made bytes are then not stored.

        :param state: its sources, viewed with it or after it, and before any of them is read
        :param alive: called for each piece: renews a lease, raises ``ExpansionError`` to end the expansion
        :raises ExpansionError: when no motif makes it, with the reason of each; readers get the same error
        """
        try:
            state = self._with_fresh_sources(view, state, chain, alive)
            for _ in range(_ROUNDS):
                failures: list[str] = []
                for motif in self._candidates(view, state):
                    try:
                        self._make(view, motif, state, stream, chain, alive)
                    except ExpansionError as error:
                        failures.append(f"`{motif.template}`: {error}")
                        if stream.length:
                            break
                    else:
                        return motif
                before, state = state, self._freshness.check_sources(view)
                if stream.length or state.closure == before.closure:
                    break  # no source was changed meanwhile
        except SluiceError as error:
            failures = [f"{error}"]
        missing = [one.template for one in view.record.motifs if one.template not in self._templates]
        failures += [f"no template `{one}` is installed" for one in missing]
        failure = ExpansionError(f"`{view.name}` cannot be made again: {'; '.join(failures) or 'it has no motif'}")
        stream.fail(failure)
        raise failure

    def prove(self, view: ItemView, alive: Callable[[], None]) -> Motif:
        """Make the bytes of an item that has them, and compare; return the motif that made them.

        A motif that is not exact has only to make some bytes.

        :raises ExpansionError: when no motif does
        """
        failures: list[str] = []
        for motif in self._choose(view, [one for one in view.record.motifs if not self._lacks_copy(one)]):
            try:
                made = self._pieces(view, motif, (), alive)
                for _ in proven(made, view) if self._is_exact(view, motif) else bounded(made):
                    alive()
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
            else:
                return motif
        raise ExpansionError("; ".join(failures) or "it has no motif")

    def _candidates(self, view: ItemView, state: SourceState) -> Sequence[Motif]:
        usable = self._freshness.usable(view, state)
        if state.stale:
            return self._choose(view, usable)
        others = [one for one in view.record.motifs if one not in usable and self._is_exact(view, one)]
        chosen = (*self._choose(view, usable), *self._choose(view, others))
        # an unverified motif may pass wrong bytes to readers, and then no other motif can be tried
        return sorted(chosen, key=lambda one: not one.proven)

    def _lacks_copy(self, motif: Motif) -> bool:
        kind = self._templates.get(motif.template)
        return kind is not None and kind.keeps_copy and COPY not in motif.params

    def _is_exact(self, view: ItemView, motif: Motif) -> bool:
        return is_exact(motif, view.name, self._templates)

    def _with_fresh_sources(
        self, view: ItemView, state: SourceState, chain: tuple[str, ...], alive: Callable[[], None]
    ) -> SourceState:
        """View the sources of an item; stale ones are made first, else their versions would change soon."""
        made = False
        stale = [name for name in state.changed if state.versions.get(name) == view.record.made_from.get(name)]
        for motif in view.record.motifs:
            for name in derived_from([motif], view.name, self._templates):
                if name in stale and name not in (*chain, view.name):
                    stale.remove(name)
                    made = True
                    for _ in self._shim.read(name, motif.identity, (*chain, view.name)):
                        alive()
        return self._freshness.check_sources(view) if made else state

    def _make(
        self,
        view: ItemView,
        motif: Motif,
        state: SourceState,
        stream: SharedStream,
        chain: tuple[str, ...],
        alive: Callable[[], None],
    ) -> None:
        gone = state.gone.intersection(internal_sources(motif, view.name, self._templates))
        # known before the first byte; for an item contracted without a copy the storage may have kept the source's
        # bytes
        if gone and not self._lacks_copy(motif):
            raise SourceGone(min(gone))
        same = self._is_exact(view, motif) and not state.stale
        record = self._freshness.recorded(view, motif, state)
        if not same:
            record = without_copies(record, view.name, self._templates)
        made = self._pieces(view, motif, (*chain, view.name), alive)
        pieces = _passed_on(proven(made, view) if same else bounded(made), stream, same, alive)
        try:
            stored = chain_of(tuple(islice(pieces, 1)), pieces)  # readers get the first one before a PUT begins
            if same:
                self._shim.expand(view, record, stored)
            else:
                self._shim.replace(view, record, stored)
        except (PeerError, OSError) as error:
            log.warning("`%s` was made again and is not stored: %s", view.name, error)
        for _ in pieces:  # the storage stopped reading, readers need the rest
            pass
        if not stream.complete:
            raise ExpansionError("it was not made to its end")

    def _pieces(
        self, view: ItemView, motif: Motif, chain: tuple[str, ...], alive: Callable[[], None]
    ) -> Iterator[bytes]:
        kind = self._templates.get(motif.template)
        if kind is None:
            raise ExpansionError("no such template is installed")
        with contained(motif.template):
            template = kind(motif.params)
            call = Call(self._shim, view, template, motif, chain, alive)
        return pieces_of(template, call, motif)


def _passed_on(pieces: Iterator[bytes], stream: SharedStream, same: bool, alive: Callable[[], None]) -> Iterator[bytes]:
    """``pieces``, which are also appended to ``stream``."""
    for piece in pieces:
        alive()
        stream.append(piece, same)
        yield piece
    stream.finish(same)
