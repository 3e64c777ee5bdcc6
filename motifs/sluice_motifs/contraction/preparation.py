"""Preparation of a contraction: a verification that the item's bytes can be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sluice_motifs.api import ExpansionError, NotContractible, contained
from sluice_motifs.dependencies.freshness import Freshness, SourceState, Templates, with_motifs
from sluice_motifs.expansion.calls import Call, Keep
from sluice_motifs.expansion.expander import Expander
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Shim, Views

#: What is verified before a contraction: nothing; that a motif once made the bytes, and its external sources exist;
#: that a motif makes the very same bytes now.
TRUST: Final = "trust"
HEAD: Final = "head"
EXPAND: Final = "expand"
VERIFICATIONS: Final = (TRUST, HEAD, EXPAND)


class Preparation:
    """Verifies items, and lets their templates prepare the contraction.

    :param keep: stores a copy
    """

    def __init__(self, shim: Shim, templates: Templates, keep: Keep) -> None:
        self._shim = shim
        self._templates = templates
        self._keep = keep
        self._freshness = Freshness(shim, templates)
        self._expander = Expander(shim, templates)

    def prepare(self, view: ItemView, verify: str, alive: Callable[[], None], views: Views) -> ItemView:
        """Verify as requested and let the templates prepare the contraction; return the item with the record to store.

        Stale bytes need no verification: they are never read again.
        """
        state = Freshness(views, self._templates).check_sources(view)
        usable = self._freshness.usable(view, state)
        if not self.is_prepared(view, verify, state):
            view, usable = self._made_sure(view, usable, state, alive)
            verify = TRUST  # the external sources were just read
        failures = []
        for motif in usable:
            try:
                self._ready(view, motif, verify, alive)
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
        if len(failures) == len(usable):
            raise refused(view, "; ".join(failures) or "no motif reads what has changed")
        return view

    def is_prepared(self, view: ItemView, verify: str, state: SourceState) -> bool:
        """Whether the item can be contracted without reading or making bytes."""
        usable = self._freshness.usable(view, state)
        return state.stale or (verify != EXPAND and any(one.proven or verify == TRUST for one in usable))

    def _made_sure(
        self, view: ItemView, usable: Sequence[Motif], state: SourceState, alive: Callable[[], None]
    ) -> tuple[ItemView, Sequence[Motif]]:
        """Return the item with a motif that was shown to make its bytes, from a copy if no other motif does."""
        failure = None
        if usable:
            try:
                return self._prove(view, state, alive)
            except NotContractible as error:
                failure = error
        copied = self._with_copy(view, alive)
        if copied is view and failure is not None:
            raise failure
        kept = [one for one in copied.record.motifs if one.proven and one not in view.record.motifs]
        return (copied, kept) if kept else self._prove(copied, self._freshness.check_sources(copied), alive)

    def _prove(
        self, view: ItemView, before: SourceState, alive: Callable[[], None]
    ) -> tuple[ItemView, Sequence[Motif]]:
        try:
            motif = self._expander.prove(view, alive)
        except ExpansionError as error:
            raise refused(view, f"{error}") from error
        return replace(view, record=self._freshness.recorded(view, motif, before)), [motif]

    def _with_copy(self, view: ItemView, alive: Callable[[], None]) -> ItemView:
        """Return the item with a copy by the first of its motifs that keeps one; else unchanged."""
        for motif in view.record.motifs:
            kind = self._templates.get(motif.template)
            if kind is None or not kind.keeps_copy:
                continue
            try:
                with contained(motif.template):
                    template = kind(motif.params)
                    call = Call(self._shim, view, template, motif, (), alive, self._keep)
                    params = {**motif.params, **template.keep_copy(call)}
            except ExpansionError as error:
                raise refused(view, f"`{motif.template}`: {error}") from error
            kept = replace(motif, params=params, proven=kind.copy_is_item)
            motifs = tuple(kept if one == motif else one for one in view.record.motifs)
            return replace(view, record=with_motifs(view, motifs, self._templates))
        return view

    def _ready(self, view: ItemView, motif: Motif, verify: str, alive: Callable[[], None]) -> None:
        with contained(motif.template):
            template = self._templates[motif.template](motif.params)
            call = Call(self._shim, view, template, motif, (), alive)
            template.contract(call)
            if verify != TRUST:
                template.verify(call)


def refused(view: ItemView, reason: str) -> NotContractible:
    """The reason why an item is not contracted."""
    return NotContractible(f"`{view.name}` is not contracted: {reason}")
