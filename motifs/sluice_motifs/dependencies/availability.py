"""Whether an item could be made: motifs whose sources are items with motifs form a graph that may have cycles.

An item is *available* when it has its bytes, or one of its motifs that still fit (``Freshness.usable``) has all its
sources available; external sources count as available.  Circular pairs are useful (a file and its compressed form), so
cycles are allowed, as long as not all members are contracted.

Contracting an item keeps every other item available if the item itself is available without its own bytes: an item
that needs them has them made.  So one search from this item is enough.  It finds the *support*: items with their
bytes on which the result relies.  Two concurrent contractions could each rely on the other's bytes; so a contraction
holds the leases of its item and its support while it decides and writes (``contraction``).

A preserving item relies on a copy that no client can change, and on no other item.  The bytes that its motif would make
from its source do not count: a client may write or delete the source at any time.
"""

from __future__ import annotations

from typing import Final

from sluice_motifs.api import PRESERVING, NotContractible, TooDeep
from sluice_motifs.dependencies.freshness import MOST_LOOKED_AT, Freshness, Templates, sources_of
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Views

#: The longest chain of items made from each other.
DEEPEST: Final = 8


class Availability:
    """Searches the items that make an item available."""

    def __init__(self, views: Views, templates: Templates) -> None:
        self._views = views
        self._templates = templates

    def support(self, item: ItemView, trusted: bool = False) -> frozenset[str]:
        """The items whose bytes allow the contraction of ``item``.

        :param trusted: whether motifs count that were not shown to make these bytes
        :raises NotContractible: when it could not be made again; names the obstacle of each motif
        :raises TooDeep: when that would need too many items, or too long a chain of them
        """
        search = _Search(self._views, self._templates, trusted)
        found = search.item(item, ())
        if found is not None:
            return found
        if search.cut:
            raise TooDeep(f"`{item.name}` is not contracted: {search.cut}")
        raise NotContractible(f"`{item.name}` is not contracted: {'; '.join(dict.fromkeys(search.reasons))}")


class _Search:
    """One search, which views an item once; ``reasons`` are the obstacles."""

    def __init__(self, views: Views, templates: Templates, trusted: bool) -> None:
        self._views = views
        self._templates = templates
        self._trusted = trusted
        self._freshness = Freshness(views, templates)
        self._known: dict[str, ItemView | None] = {}
        self.cut = ""
        self.reasons: list[str] = []

    def item(self, view: ItemView, path: tuple[str, ...]) -> frozenset[str] | None:
        """The support of an item without its own bytes; None without a support."""
        if not view.record.motifs:
            return self._refuse("it has no motif" if not path else f"`{view.name}` has no motif")
        state = self._freshness.check_sources(view)
        usable = self._freshness.usable(view, state)
        # a stale or contracted item needs no verification
        trusted = self._trusted or state.stale or view.contracted
        for motif in view.record.motifs:
            if motif.template not in self._templates:
                self._refuse(f"no template `{motif.template}` is installed")
            elif motif not in usable:
                self._refuse(f"`{motif.template}` reads sources of `{view.name}` that changed or are not recorded")
            elif not (motif.proven or trusted):
                self._refuse(f"`{motif.template}` was not shown to make the bytes of `{view.name}`")
            elif (found := self._motif(motif, view.name, (*path, view.name))) is not None:
                return found
        return None

    def _motif(self, motif: Motif, item: str, path: tuple[str, ...]) -> frozenset[str] | None:
        support: set[str] = set()
        for source in sources_of(motif, item, self._templates):
            if source.external:
                continue
            if source.owned:
                if self._view(source.name) is None:
                    return self._refuse(self.cut or f"copy `{source.name}` does not exist")
                continue
            if self._templates[motif.template].relation == PRESERVING:
                return self._refuse(f"source `{source.name}` may change, and no copy is kept")
            supported_by = self._source(source.name, path)
            if supported_by is None:
                return None
            support |= supported_by
        return frozenset(support)

    def _source(self, name: str, path: tuple[str, ...]) -> frozenset[str] | None:
        if name in path:
            return self._refuse(f"`{name}` would be needed to make itself")
        view = self._view(name)
        if view is None:
            return self._refuse(self.cut or f"source `{name}` does not exist")
        if not view.contracted:
            return frozenset({name})
        if len(path) >= DEEPEST:
            self.cut = f"more than {DEEPEST} items would be made one from the other"
            return self._refuse(self.cut)
        return self.item(view, path)

    def _view(self, name: str) -> ItemView | None:
        if name not in self._known:
            if len(self._known) >= MOST_LOOKED_AT:
                self.cut = f"more than {MOST_LOOKED_AT} items would have to be looked at"
                return None
            self._known[name] = self._views.view(name)
        return self._known[name]

    def _refuse(self, reason: str) -> frozenset[str] | None:
        self.reasons.append(reason)
        return None
