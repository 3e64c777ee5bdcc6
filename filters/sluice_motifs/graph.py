"""Whether an item could be made again: motifs whose sources are items with motifs form a graph that may have cycles.

An item is *available* when its bytes are there, or one of its motifs has all sources available; external sources count
as available.  Circular pairs are useful (a file and its compressed twin), so cycles are allowed, and what matters is
that not all members are contracted.

Contracting an item keeps every other item available if the item itself is available without its own bytes: whoever
used them has them made again.  So one search from this item is enough.  It finds the *support*: items whose bytes are
there and on which the answer stands.  Two contractions at once could each stand on the other's bytes; so a contraction
holds the leases of its item and its support while it judges and writes (``contraction``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_motifs.api import PRESERVING, NotContractible, Source, Template, TooDeep
from sluice_motifs.records import ItemView, Motif

#: Expansions one through the other.
DEEPEST: Final = 8
#: Items that one search looks at.
_MOST_LOOKED_AT: Final = 256

Templates = Mapping[str, type[Template]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a search goes: ``deepest`` sources of sources, ``items`` looked at."""

    deepest: int = DEEPEST
    items: int = _MOST_LOOKED_AT


def sources_of(motif: Motif, item: str, templates: Templates) -> tuple[Source, ...] | None:
    """What a motif reads; None when its template is not there."""
    template = templates.get(motif.template)
    return None if template is None else tuple(template(motif.params).sources(item))


class Availability:
    """:param view: an item as it is now; None when there is none
    :param unreliable: why a source may vanish, see ``Shim.unreliable``
    """

    def __init__(
        self,
        view: Callable[[str], ItemView | None],
        unreliable: Callable[[str], str],
        templates: Templates,
        limits: Limits = Limits(),
    ) -> None:
        self._view = view
        self._unreliable = unreliable
        self._templates = templates
        self._limits = limits

    def support(self, item: ItemView) -> frozenset[str]:
        """The items whose bytes make it possible to give up those of ``item``.

        :raises NotContractible: when it could not be made again, with what stands in the way of each motif
        :raises TooDeep: when that would take too many expansions one through the other
        """
        search = _Search(self._view, self._unreliable, self._templates, self._limits)
        reasons: list[str] = []
        for motif in item.record.motifs:
            found = search.motif(motif, item.name, (item.name,), reasons)
            if found is not None:
                return found
        if search.cut:
            raise TooDeep(f"`{item.name}` is not contracted: {search.cut}")
        why = "; ".join(dict.fromkeys(reasons)) or "it has no motif"
        raise NotContractible(f"`{item.name}` is not contracted: {why}")


class _Search:
    """One search; a view is asked for once."""

    def __init__(
        self,
        view: Callable[[str], ItemView | None],
        unreliable: Callable[[str], str],
        templates: Templates,
        limits: Limits,
    ) -> None:
        self._view = view
        self._unreliable = unreliable
        self._templates = templates
        self._limits = limits
        self._known: dict[str, ItemView | None] = {}
        self.cut = ""

    def motif(self, motif: Motif, item: str, path: tuple[str, ...], reasons: list[str]) -> frozenset[str] | None:
        """The support of ``item`` by this motif; None when a source is not available, with the reason in ``reasons``."""
        sources = sources_of(motif, item, self._templates)
        if sources is None:
            reasons.append(f"no template `{motif.template}` is installed")
            return None
        preserving = self._templates[motif.template].relation == PRESERVING
        support: set[str] = set()
        for source in sources:
            if source.external:
                continue
            if preserving and (why := self._unreliable(source.name)):
                reasons.append(f"source `{source.name}` may vanish: {why}")
                return None
            found = self._source(source.name, path, reasons)
            if found is None:
                return None
            support |= found
        return frozenset(support)

    def _source(self, name: str, path: tuple[str, ...], reasons: list[str]) -> frozenset[str] | None:
        if name in path:
            reasons.append(f"`{name}` would be needed to make itself")
            return None
        view = self._look(name)
        if view is None:
            reasons.append(f"source `{name}` does not exist" if not self.cut else self.cut)
            return None
        if not view.contracted:
            return frozenset({name})
        if len(path) >= self._limits.deepest:
            self.cut = f"more than {self._limits.deepest} items would be made one from the other"
            reasons.append(self.cut)
            return None
        return _first(self.motif(one, name, (*path, name), reasons) for one in view.record.motifs)

    def _look(self, name: str) -> ItemView | None:
        if name not in self._known:
            if len(self._known) >= self._limits.items:
                self.cut = f"more than {self._limits.items} items would have to be looked at"
                return None
            self._known[name] = self._view(name)
        return self._known[name]


def _first(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    return next((one for one in found if one is not None), None)
