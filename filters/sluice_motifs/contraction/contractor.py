"""Giving up the bytes of an item.

1. Under the lease of the item, it is proven as asked that it can be made again, and the templates do what they must
   before.
2. Under the leases of all items on whose bytes that stands (its support) and of those that it preserves, too, the item
   is judged once more and then replaced by its contracted form.  Two contractions whose decisions stand on each
   other's bytes need the same leases, so one of them is busy, and later judges what the other has left.

Most proofs take no time, since the sources are there.  Then their leases are taken before they are looked at, and the
item is judged once: each look asks all servers that have a copy.

Only that rests on leases.  What a client writes meanwhile is newer for the storage, which refuses to replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from sluice_core.errors import Conflict, NotFound
from sluice_motifs.api import NotContractible, Template, TooDeep
from sluice_motifs.contraction.preparation import EXPAND, HEAD, TRUST, Preparation, refused
from sluice_motifs.dependencies.availability import Availability
from sluice_motifs.dependencies.freshness import Templates, is_exact, preserved_by, sources_by_name
from sluice_motifs.storage.leases import HeldLeases, Renewal
from sluice_motifs.storage.records import ItemView
from sluice_motifs.storage.shim import Dependents, Leases, Shim, ViewedOnce, Views

CONTRACTED: Final = "contracted"
#: Somebody works at the item, or at one on whose bytes the decision stands.
BUSY: Final = "busy"
#: Somebody wrote the item meanwhile.
CHANGED: Final = "changed"
#: Its bytes were gone.
ALREADY: Final = "already contracted"


class Contractor:
    """Contracts items; several may work beside each other.

    :param dependents: told of preserving items and the sources that these need; None where no source makes its
        writers wait (``Shim.unreliable`` says so of each)
    :param contracted: told of each item whose bytes were given up
    """

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        dependents: Dependents | None = None,
        contracted: Callable[[ItemView], object] = lambda view: None,
    ) -> None:
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._dependents = dependents
        self._contracted = contracted
        self._preparation = Preparation(shim, templates)

    def contract(self, name: str, verify: str = HEAD) -> str:
        """Give up the bytes of an item if they can be made again; says what became of it.

        What has changed since it was recorded is proven by making the bytes, whatever ``verify`` is.

        :param verify: one of ``VERIFICATIONS``
        :raises NotFound: when there is no such item
        :raises NotContractible: when its bytes must stay, and why
        :raises TooDeep: when too many items would be made one from the other
        """
        with HeldLeases(self._leases) as held:
            if not held.acquire({name}):
                return BUSY
            seen = _find(self._shim, name)
            if seen.contracted:
                return ALREADY
            self._refuse_empty(seen)
            waits = self._waits(seen, verify)
            if not waits and not held.acquire(sources_by_name(seen.record.motifs, name, self._templates)):
                return BUSY
            views = ViewedOnce(self._shim, seen)
            judged = self._preparation.prepare(seen, verify, Renewal(held.renew), views)
            needed = preserved_by(judged.record.motifs, name, self._templates)
            if judged is not seen:
                views = ViewedOnce(self._shim)  # a copy was made
            stands_on = {*self._support(judged, views), *needed}
            if waits or judged is not seen or not stands_on <= held.items:
                if not held.acquire(stands_on):
                    return BUSY
                views = ViewedOnce(self._shim)
                if views.view(name) != seen:
                    return CHANGED
                if not self._support(judged, views) <= held.items:
                    return BUSY  # others than a moment ago
            self._note_needed(needed, name)
            if not held.renew():
                return BUSY
            if not self._shim.contract(seen, judged.record):
                return CHANGED
            self._contracted(seen)
            return CONTRACTED

    def obstacle(self, name: str) -> str:
        """Why the bytes of an item would have to stay, as far as that shows without proving anything; else empty.

        :raises NotFound: when there is no such item
        """
        try:
            views = ViewedOnce(self._shim)
            found = _find(views, name)
            self._refuse_empty(found)
            self._support(found, views)
        except (NotContractible, TooDeep) as error:
            return str(error)
        return ""

    @contextmanager
    def copying(self, name: str, to: str) -> Iterator[ItemView]:
        """While it is entered, an item that is contracted may be copied without its bytes, with its record.

        :raises NotFound: when there is no such item
        :raises NotContractible: when it has bytes, or the copy could not be made from the same sources: copy bytes
        :raises Conflict: when somebody works at the item or its sources
        """
        views = ViewedOnce(self._shim)
        seen = _find(views, name)
        if not seen.contracted:
            raise NotContractible(f"`{name}` is not copied without its bytes: they are there")
        copy = replace(seen, name=to)
        with HeldLeases(self._leases) as held:
            needed = preserved_by(copy.record.motifs, to, self._templates)
            if not held.acquire({name, *self._support(copy, views), *needed}):
                raise Conflict(f"`{name}` or what it is made from is being worked at")
            views = ViewedOnce(self._shim)
            if views.view(name) != seen or not self._support(copy, views) <= held.items:
                raise Conflict(f"`{name}` or what it is made from was changed meanwhile")
            self._note_needed(needed, to)
            if not held.renew():
                raise Conflict(f"`{name}` or what it is made from was changed meanwhile")
            yield seen

    def _note_needed(self, sources: Sequence[str], item: str) -> None:
        if self._dependents is not None:
            for source in sources:
                self._dependents.add(source, item)

    def _refuse_empty(self, view: ItemView) -> None:
        """Stored empty, to be made first by a motif that makes the very same bytes again: it would make others."""
        motifs = view.record.motifs
        if motifs and not view.plain.size and all(is_exact(one, view.name, self._templates) for one in motifs):
            raise refused(view, "it is empty, and its motifs make none but the bytes that it had")

    def _waits(self, view: ItemView, verify: str) -> bool:
        """Whether it may take long to prove what is asked for: sources must not be leased meanwhile."""
        kinds = (self._templates[one.template] for one in view.record.motifs if one.template in self._templates)
        return verify == EXPAND or any(
            kind.contract is not Template.contract or (verify != TRUST and kind.verify is not Template.verify)
            for kind in kinds
        )

    def _support(self, view: ItemView, views: Views) -> frozenset[str]:
        return Availability(views, self._shim.unreliable, self._templates).support(view)


def _find(views: Views, name: str) -> ItemView:
    view = views.view(name)
    if view is None:
        raise NotFound(f"there is no item `{name}`")
    if view.pinned and not view.contracted:
        raise refused(view, view.pinned)
    return view
