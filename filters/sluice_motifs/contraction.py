"""Giving up the bytes of an item.

Under the leases of the item and of all items on whose bytes the decision stands (its support), the item is judged once
more and then replaced by its contracted form.  Two contractions whose decisions stand on each other's bytes need the
same leases, so one of them is busy, and later judges what the other has left.

Only that rests on leases.  What a client writes meanwhile is newer for the storage, which refuses to replace it.
"""

from __future__ import annotations

from typing import Final

from sluice_core.errors import NotFound
from sluice_motifs.api import ExpansionError, NotContractible, Template
from sluice_motifs.calls import Call
from sluice_motifs.expansion import Expander
from sluice_motifs.freshness import dependencies, differs
from sluice_motifs.graph import Availability, Templates
from sluice_motifs.leases import HeldLeases
from sluice_motifs.records import ItemView, Motif, Record
from sluice_motifs.shim import Leases, Shim

#: What is proven before bytes go: nothing; that what lies outside is there; that a motif makes the very same bytes.
TRUST: Final = "trust"
HEAD: Final = "head"
EXPAND: Final = "expand"
VERIFICATIONS: Final = (TRUST, HEAD, EXPAND)

CONTRACTED: Final = "contracted"
#: Somebody works at the item, or at one on whose bytes the decision stands.
BUSY: Final = "busy"
#: Somebody wrote the item meanwhile.
CHANGED: Final = "changed"
#: Its bytes were gone.
ALREADY: Final = "already contracted"


class Contractor:
    """Contracts items; several may work beside each other."""

    def __init__(self, shim: Shim, leases: Leases, templates: Templates) -> None:
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._expander = Expander(shim, templates)
        self._availability = Availability(shim.view, shim.unreliable, templates)

    def contract(self, name: str, verify: str = HEAD) -> str:
        """Give up the bytes of an item if they can be made again; says what became of it.

        :param verify: one of ``VERIFICATIONS``
        :raises NotFound: when there is no such item
        :raises NotContractible: when its bytes must stay, and why
        """
        view = self._find(name)
        if view.contracted:
            return ALREADY
        with HeldLeases(self._leases) as held:
            if not held.acquire({name} | self._availability.support(view)):
                return BUSY
            view = self._find(name)
            if view.contracted:
                return ALREADY
            if not self._availability.support(view) <= held.items:
                return BUSY  # others than a moment ago
            record = self._prepare(view, verify)
            if not held.renew():
                return BUSY
            return CONTRACTED if self._shim.contract(view, record) else CHANGED

    def _prepare(self, view: ItemView, verify: str) -> Record:
        """Prove what is asked for and let the templates do what they must before; what is kept with the item."""
        now = dependencies(self._shim, view, self._templates)
        if differs(view.record.made_from, now):
            raise NotContractible(f"`{view.name}` is not contracted: a source has changed since it was made")
        try:
            if verify == EXPAND:
                self._expander.prove(view)
        except ExpansionError as error:
            raise NotContractible(f"`{view.name}` is not contracted: {error}") from error
        ready, failures = False, []
        for motif in view.record.motifs:
            try:
                self._ready(view, motif, verify)
                ready = True
            except ExpansionError as error:
                failures.append(f"`{motif.template}`: {error}")
        if not ready:
            raise NotContractible(f"`{view.name}` is not contracted: {'; '.join(failures)}")
        return Record(view.record.motifs, {**now, **view.record.made_from})

    def _ready(self, view: ItemView, motif: Motif, verify: str) -> None:
        kind = self._templates.get(motif.template)
        if kind is None:
            raise ExpansionError("no such template is installed")
        template: Template = kind(motif.params)
        call = Call(self._shim, view, template, motif, ())
        template.contract(call)
        if verify != TRUST:
            template.verify(call)

    def _find(self, name: str) -> ItemView:
        view = self._shim.view(name)
        if view is None:
            raise NotFound(f"there is no item `{name}`")
        if view.pinned and not view.contracted:
            raise NotContractible(f"`{name}` is not contracted: {view.pinned}")
        return view
