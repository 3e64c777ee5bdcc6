"""Giving up the bytes of an item.

1. Under the lease of the item, it is proven as asked that it can be made again, and the templates do what they must
   before: a preserving one keeps a copy.
2. Under the leases of its sources, and of all other items on whose bytes that stands (its support), the item is
   judged and then replaced by its contracted form.  Two contractions whose decisions stand on each other's bytes need
   the same leases, so one of them is busy, and later judges what the other has left.

Most items stand on their sources alone, whose leases are taken before these are looked at.  So each item is looked at
once, and twice where it has to be proven: each look asks all servers that have a copy.

Only items that are made from each other rest on leases.  What a client writes meanwhile is newer for the storage, which
refuses to replace it.  Copies have rules of their own (``copies``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from sluice_core.errors import Conflict
from sluice_motifs.api import NotContractible, Template, TooDeep
from sluice_motifs.contraction.copies import GRACE, CopyKeeper
from sluice_motifs.contraction.preparation import EXPAND, HEAD, TRUST, Preparation, refused
from sluice_motifs.dependencies.availability import Availability
from sluice_motifs.dependencies.freshness import Templates, copies_of, derived_from, is_exact
from sluice_motifs.storage.leases import HeldLeases, Renewal
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Leases, Shim, ViewedOnce, Views, find_item

CONTRACTED: Final = "contracted"
#: Somebody works at the item, or at one on whose bytes the decision stands.
BUSY: Final = "busy"
#: Somebody wrote the item meanwhile.
CHANGED: Final = "changed"
#: Its bytes were gone.
ALREADY: Final = "already contracted"


class Contractor:
    """Contracts items; several may work beside each other.

    :param contracted: told of each item whose bytes were given up
    :param grace: that of the sweeper of copies, in seconds
    """

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        contracted: Callable[[ItemView], object] = lambda view: None,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shim = shim
        self._views = shim.unhurried
        self._leases = leases
        self._templates = templates
        self._contracted = contracted
        self._keeper = CopyKeeper(shim.copies, grace)
        self._clock = clock
        self._preparation = Preparation(shim, templates, self._keeper.keep)

    def contract(self, name: str, verify: str = HEAD) -> str:
        """Give up the bytes of an item if they can be made again; return the outcome.

        What has changed since it was recorded, or was never proven, is proven by making the bytes.

        :param verify: one of ``VERIFICATIONS``
        :raises NotFound: when there is no such item
        :raises NotContractible: when its bytes must stay, and why
        :raises TooDeep: when too many items would be made one from the other
        """
        began = self._clock()
        with HeldLeases(self._leases, self._clock) as held:
            if not held.acquire({name}):
                return BUSY
            seen = _find(self._views, name)
            if seen.contracted:
                return ALREADY
            self._refuse_empty(seen)
            views = ViewedOnce(self._views, seen)
            waits = self._waits(seen, verify)
            if not waits and not held.acquire(self._sources(seen)):
                return BUSY
            judged = self._preparation.prepare(seen, verify, Renewal(held.renew), views)
            if waits or judged is not seen:  # a copy was made, or it took long
                if not held.acquire(self._sources(judged)):
                    return BUSY
                views = ViewedOnce(self._views)
                if views.view(name) != seen:
                    return CHANGED
            support = self._support(judged, views, verify)
            if not support <= held.items:  # it stands on what its sources are made from
                if not held.acquire(support):
                    return BUSY
                views = ViewedOnce(self._views)
                if views.view(name) != seen:
                    return CHANGED
                if not self._support(judged, views, verify) <= held.items:
                    return BUSY  # others than a moment ago
            self._refer(judged, name, seen)
            if not held.renew() or self._clock() - began > self._keeper.valid:
                return BUSY
            if not self._shim.contract(seen, judged.record):
                return CHANGED
            self._contracted(replace(seen, record=judged.record))
            return CONTRACTED

    def obstacle(self, name: str) -> str:
        """Why the bytes of an item would have to stay, as far as that shows without proving anything; else empty.

        :raises NotFound: when there is no such item
        """
        try:
            views = ViewedOnce(self._shim)
            seen = _find(views, name)
            self._refuse_empty(seen)
            if not any(self._kind(motif).keeps_copy for motif in seen.record.motifs):
                self._support(seen, views, TRUST)
        except (NotContractible, TooDeep) as error:
            return str(error)
        return ""

    @contextmanager
    def copying(self, name: str, to: str) -> Iterator[ItemView]:
        """Context in which a contracted item may be copied without its bytes, with its record.

        :raises NotFound: when there is no such item
        :raises NotContractible: when it has bytes, or the copy could not be made from the same sources: copy bytes
        :raises Conflict: when somebody works at the item or its sources
        """
        began = self._clock()
        views = ViewedOnce(self._shim)
        seen = _find(views, name)
        if not seen.contracted:
            raise NotContractible(f"`{name}` is not copied without its bytes: they are there")
        copy = replace(seen, name=to)
        with HeldLeases(self._leases, self._clock) as held:
            if not held.acquire({name, *self._support(copy, views, HEAD)}):
                raise Conflict(f"`{name}` or what it is made from is being worked at")
            views = ViewedOnce(self._shim)
            if views.view(name) != seen or not self._support(copy, views, HEAD) <= held.items:
                raise Conflict(f"`{name}` or what it is made from was changed meanwhile")
            self._refer(copy, to, None)
            if views.view(name) != self._shim.view(name):
                raise Conflict(f"`{name}` was changed meanwhile")
            if not held.renew() or self._clock() - began > self._keeper.valid:
                raise Conflict(f"`{name}` or what it is made from was changed meanwhile")
            yield seen

    def _refer(self, judged: ItemView, name: str, seen: ItemView | None) -> None:
        for copy in copies_of(judged.record.motifs, name, self._templates):
            self._shim.copies.refer(copy, name, seen)

    def _kind(self, motif: Motif) -> type[Template]:
        return self._templates.get(motif.template, Template)

    def _refuse_empty(self, view: ItemView) -> None:
        """Stored empty, to be made first by a motif that makes the very same bytes again: it would make others."""
        motifs = view.record.motifs
        if motifs and not view.plain.size and all(is_exact(one, view.name, self._templates) for one in motifs):
            raise refused(view, "it is empty, and its motifs make none but the bytes that it had")

    def _waits(self, view: ItemView, verify: str) -> bool:
        """Whether it may take long to prove what is asked for: sources must not be leased meanwhile."""
        motifs = view.record.motifs
        kinds = [self._kind(one) for one in motifs]
        return (
            verify == EXPAND
            or not any(one.proven or verify == TRUST for one in motifs)
            or any(
                kind.contract is not Template.contract or (verify != TRUST and kind.verify is not Template.verify)
                for kind in kinds
            )
        )

    def _sources(self, view: ItemView) -> Sequence[str]:
        return derived_from(view.record.motifs, view.name, self._templates)

    def _support(self, view: ItemView, views: Views, verify: str) -> frozenset[str]:
        return Availability(views, self._templates).support(view, trusted=verify == TRUST)


def _find(views: Views, name: str) -> ItemView:
    view = find_item(views, name)
    if view.pinned and not view.contracted:
        raise refused(view, view.pinned)
    return view
