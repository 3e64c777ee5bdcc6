"""What happens before the bytes of an item go: it is proven that they can be made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sluice_motifs.api import ExpansionError, NotContractible, contained
from sluice_motifs.dependencies.freshness import Freshness, Templates
from sluice_motifs.expansion.calls import Call
from sluice_motifs.expansion.expander import Expander
from sluice_motifs.storage.records import ItemView, Motif, Record
from sluice_motifs.storage.shim import Shim, Views

#: What is proven before bytes go: nothing; that what lies outside is there; that a motif makes the very same bytes.
TRUST: Final = "trust"
HEAD: Final = "head"
EXPAND: Final = "expand"
VERIFICATIONS: Final = (TRUST, HEAD, EXPAND)


class Preparation:
    """Proves items, and lets their templates do what they must before."""

    def __init__(self, shim: Shim, templates: Templates) -> None:
        self._shim = shim
        self._templates = templates
        self._freshness = Freshness(shim, templates)
        self._expander = Expander(shim, templates)

    def prepare(self, view: ItemView, verify: str, alive: Callable[[], None], views: Views) -> ItemView:
        """Prove what is asked for and let the templates do what they must before; the item with the record to keep."""
        state = Freshness(views, self._templates).look(view)
        usable = self._freshness.usable(view, state)
        if not state.stale and not usable:
            view = self._with_copy(view, alive)
            state = self._freshness.look(view)
            usable = self._freshness.usable(view, state)
        if not state.stale and (verify == EXPAND or not usable):
            try:
                motif, before = self._expander.prove(view, alive)
            except ExpansionError as error:
                raise refused(view, f"{error}") from error
            view = replace(view, record=self._freshness.recorded(view, motif, before))
            usable = [motif]
        failures = []
        for motif in usable:
            try:
                self._ready(view, motif, verify, alive)
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
        if len(failures) == len(usable):
            raise refused(view, "; ".join(failures) or "no motif reads what has changed")
        return view

    def _with_copy(self, view: ItemView, alive: Callable[[], None]) -> ItemView:
        """The item with a copy of its bytes, by the first of its motifs that keeps one; else as it is."""
        for motif in view.record.motifs:
            kind = self._templates.get(motif.template)
            if kind is None or not kind.keeps_copy:
                continue
            try:
                with contained(motif.template):
                    template = kind(motif.params)
                    params = {**motif.params, **template.keep_copy(Call(self._shim, view, template, motif, (), alive))}
            except ExpansionError as error:
                raise refused(view, f"`{motif.template}`: {error}") from error
            kept = replace(motif, params=params)
            motifs = tuple(kept if one == motif else one for one in view.record.motifs)
            copied = replace(view, record=Record(motifs, view.record.made_from))
            return replace(copied, record=self._freshness.recorded(copied, kept, self._freshness.look(copied)))
        return view

    def _ready(self, view: ItemView, motif: Motif, verify: str, alive: Callable[[], None]) -> None:
        with contained(motif.template):
            template = self._templates[motif.template](motif.params)
            call = Call(self._shim, view, template, motif, (), alive)
            template.contract(call)
            if verify != TRUST:
                template.verify(call)


def refused(view: ItemView, reason: str) -> NotContractible:
    """Why an item is not contracted."""
    return NotContractible(f"`{view.name}` is not contracted: {reason}")
