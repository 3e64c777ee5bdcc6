"""Contraction of an item.

1. Under the lease of the item, the requested verification shows that its bytes can be made, and the templates prepare
   the contraction: a preserving one keeps a copy.
2. Under the leases of its sources, and of all other items whose bytes the decision relies on (its support), the
   decision is made and the item is replaced by its contracted form.  Two contractions that rely on each other's bytes
   need the same leases, so one of them is busy, and later decides by the state that the other has left.

Most items rely on their sources only, whose leases are acquired before the sources are viewed.  So each item is viewed
once, and twice if it has to be verified: each view asks all servers that have a replica.

Leases matter only for items that are made from each other.  A client's write meanwhile is newer for the storage, which
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
#: Another process has the lease of the item, or of one whose bytes the decision relies on.
BUSY: Final = "busy"
#: A client wrote the item meanwhile.
CHANGED: Final = "changed"
#: It had no bytes already.
ALREADY: Final = "already contracted"


class Contractor:
    """Contracts items; several contractors may run concurrently.

    :param contracted: called with each contracted item
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
        """Contract an item if its bytes can be made; return the outcome.

        If a motif has changed since it was recorded, or was never verified, its bytes are made to verify it.

        :param verify: one of ``VERIFICATIONS``
        :raises NotFound: when the item does not exist
        :raises NotContractible: when it must not be contracted; says why
        :raises TooDeep: when it would need too long a chain of items made from each other
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
            if waits or judged is not seen:  # a copy was made, or the verification took long
                if not held.acquire(self._sources(judged)):
                    return BUSY
                views = ViewedOnce(self._views)
                if views.view(name) != seen:
                    return CHANGED
            support = self._support(judged, views, verify)
            if not support <= held.items:  # it relies on the sources of its sources
                if not held.acquire(support):
                    return BUSY
                views = ViewedOnce(self._views)
                if views.view(name) != seen:
                    return CHANGED
                if not self._support(judged, views, verify) <= held.items:
                    return BUSY  # they differ from those of the last view
            self._refer(judged, name, seen)
            if not held.renew() or self._clock() - began > self._keeper.valid:
                return BUSY
            if not self._shim.contract(seen, judged.record):
                return CHANGED
            self._contracted(replace(seen, record=judged.record))
            return CONTRACTED

    def obstacle(self, name: str) -> str:
        """Return why an item must not be contracted, as far as that shows without verification; else empty.

        :raises NotFound: when the item does not exist
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

        :raises NotFound: when the item does not exist
        :raises NotContractible: when it has bytes, or the copy could not be made from the same sources: copy bytes
        :raises Conflict: when another process has the lease of the item or its sources
        """
        began = self._clock()
        views = ViewedOnce(self._shim)
        seen = _find(views, name)
        if not seen.contracted:
            raise NotContractible(f"`{name}` is not copied without its bytes: they are there")
        copy = replace(seen, name=to)
        with HeldLeases(self._leases, self._clock) as held:
            if not held.acquire({name, *self._support(copy, views, HEAD)}):
                raise Conflict(f"another process changes `{name}` or its sources")
            views = ViewedOnce(self._shim)
            if views.view(name) != seen or not self._support(copy, views, HEAD) <= held.items:
                raise Conflict(f"`{name}` or its sources were changed meanwhile")
            self._refer(copy, to, None)
            if views.view(name) != self._shim.view(name):
                raise Conflict(f"`{name}` was changed meanwhile")
            if not held.renew() or self._clock() - began > self._keeper.valid:
                raise Conflict(f"`{name}` or its sources were changed meanwhile")
            yield seen

    def _refer(self, judged: ItemView, name: str, seen: ItemView | None) -> None:
        for copy in copies_of(judged.record.motifs, name, self._templates):
            self._shim.copies.refer(copy, name, seen)

    def _kind(self, motif: Motif) -> type[Template]:
        return self._templates.get(motif.template, Template)

    def _refuse_empty(self, view: ItemView) -> None:
        """Refuse an item that was stored empty for an exact motif to make it: the motif would make other bytes."""
        motifs = view.record.motifs
        if motifs and not view.plain.size and all(is_exact(one, view.name, self._templates) for one in motifs):
            raise refused(view, "it is empty, and its motifs must make exactly the bytes that it has")

    def _waits(self, view: ItemView, verify: str) -> bool:
        """Whether the verification may take long: sources must not be leased meanwhile."""
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
