"""Whether the bytes of a derived item are stale: its sources have other versions than those they were made from.

Versions are compared on each open, from the newest replicas, and no other information decides: no message about a
change, which may be lost, and no clock.  A source that is derived itself and stale makes the item stale, although
its own version will change only when it is made again.

External sources have no versions.  An item made of them is stale after ``Source.max_age`` seconds, counted from the
time in its record.

An open costs one view of each source, and of the sources of those that are derived; nothing for items without motifs.
The sources of one item are viewed concurrently if the storage can do that (``Views.view_all``).
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sluice_core.errors import NotFound
from sluice_motifs.api import COPY, DERIVED, ExpansionError, Source, Template, contained
from sluice_motifs.storage.records import ItemView, Motif, Record
from sluice_motifs.storage.shim import Views

Templates = Mapping[str, type[Template]]

#: The most items that are viewed for one item.
MOST_LOOKED_AT: Final = 256


def find_template(keyword: str, templates: Templates) -> type[Template]:
    """
    :raises NotFound: when the template is not installed
    """
    template = templates.get(keyword)
    if template is None:
        near = difflib.get_close_matches(keyword, templates, 1)
        raise NotFound(f"unknown template `{keyword}`" + (f", did you mean `{near[0]}`" if near else ""))
    return template


def sources_of(motif: Motif, item: str, templates: Templates) -> tuple[Source, ...]:
    """The sources that a motif reads; none when its template is not installed.

    :raises ExpansionError: when the template raises an error
    """
    template = templates.get(motif.template)
    if template is None:
        return ()
    with contained(motif.template):
        return tuple(template(motif.params).sources(item))


def all_sources(motifs: Iterable[Motif], item: str, templates: Templates) -> list[Source]:
    """The sources of several motifs of an item."""
    return [source for motif in motifs for source in sources_of(motif, item, templates)]


def internal_sources(motif: Motif, item: str, templates: Templates) -> tuple[str, ...]:
    """The names of the sources of a motif that are items of the storage."""
    return tuple(one.name for one in sources_of(motif, item, templates) if not one.external)


def recorded_sources(motif: Motif, item: str, templates: Templates) -> tuple[str, ...]:
    """The sources whose versions a record keeps: items, and external sources that age.

    The name of a hidden copy identifies its bytes.
    """
    sources = sources_of(motif, item, templates)
    return tuple(one.name for one in sources if not one.owned and (not one.external or one.max_age))


def is_exact(motif: Motif, item: str, templates: Templates) -> bool:
    """Whether a motif makes the very same bytes each time while its sources do not change.

    :raises ExpansionError: when the template raises an error
    """
    template = templates.get(motif.template)
    ages = any(one.max_age for one in sources_of(motif, item, templates))
    if template is None or ages:
        return False
    with contained(motif.template):
        return template(motif.params).is_exact()


@dataclass(frozen=True, slots=True)
class SourceState:
    """The sources of an item at the time of the view.

    :param versions: of the existing sources, by name; of external ones that age, the time of the view
    :param changed: sources of derived motifs that differ from those of the item's bytes, or are stale themselves
    :param gone: sources that do not exist
    :param closure: versions of all viewed items: sources, and the sources of these
    """

    versions: Mapping[str, str]
    changed: frozenset[str]
    gone: frozenset[str]
    closure: Mapping[str, str]

    @property
    def stale(self) -> bool:
        """Whether the bytes of the item are stale."""
        return bool(self.changed)


class Freshness:
    """Compares items with their sources.

    :param views: no state is kept between two calls
    """

    def __init__(self, views: Views, templates: Templates) -> None:
        self._views = views
        self._templates = templates

    def check_sources(self, view: ItemView) -> SourceState:
        """
        :raises ExpansionError: when it has more sources than the limit
        """
        if not view.record.motifs:
            return SourceState({}, frozenset(), frozenset(), {})
        search = _Search(self._views, self._templates)
        sources = all_sources(view.record.motifs, view.name, self._templates)
        search.find_all([one.name for one in sources if not one.external])
        changed = search.changed(view)
        views = {one.name: search.find(one.name) for one in sources if not one.external}
        versions = {name: one.plain.version for name, one in views.items() if one is not None}
        # a missing hidden copy is stored again while the item has its bytes
        gone = views.keys() - versions.keys() - {one.name for one in sources if one.owned}
        ageing = [one for one in sources if one.external and one.max_age]
        aged = {one.name for one in ageing if _is_older(view.record.made_from.get(one.name), one.max_age)}
        versions.update((one.name, _now()) for one in ageing)
        return SourceState(versions, changed | aged, frozenset(gone), search.versions())

    def usable(self, view: ItemView, state: SourceState) -> Sequence[Motif]:
        """The motifs that make the bytes that the item should have.

        Of a stale item, those that read a changed source; else those whose sources all have the versions
        from which the bytes were made.
        """
        motifs = []
        for motif in view.record.motifs:
            template = self._templates.get(motif.template)
            if template is None:
                continue
            if template.keeps_copy and COPY not in motif.params:
                continue
            if state.stale:
                names = recorded_sources(motif, view.name, self._templates)
                fits = template.relation == DERIVED and not state.changed.isdisjoint(names)
            else:
                fits = self._fits(view, motif, state)
            if fits:
                motifs.append(motif)
        return motifs

    def _fits(self, view: ItemView, motif: Motif, state: SourceState) -> bool:
        """Whether a motif's sources have the versions from which the bytes were made, and its copies exist."""
        internal = [one for one in sources_of(motif, view.name, self._templates) if not one.external]
        return all(
            one.name in state.versions
            and (one.owned or view.record.made_from.get(one.name) == state.versions[one.name])
            for one in internal
        )

    def recorded(self, view: ItemView, motif: Motif, state: SourceState, proven: bool = True) -> Record:
        """The record of an item whose bytes were made by ``motif`` from the sources as in ``state``.

        :param proven: whether the item has these bytes from now on
        """
        names = recorded_sources(motif, view.name, self._templates)
        made_from = {name: state.versions[name] for name in names if name in state.versions}
        kept = {} if state.stale else view.record.made_from
        # new content was not verified with the other motifs yet
        motifs = [
            replace(one, proven=proven) if one == motif else replace(one, proven=one.proven and not state.stale)
            for one in view.record.motifs
        ]
        return Record(tuple(motifs), {**kept, **made_from})

    def without(self, view: ItemView, lost: frozenset[str]) -> Record:
        """The record of an item without the motifs that read a ``lost`` source."""
        motifs = [
            one for one in view.record.motifs if lost.isdisjoint(internal_sources(one, view.name, self._templates))
        ]
        return with_motifs(view, motifs, self._templates)


def with_motifs(view: ItemView, motifs: Iterable[Motif], templates: Templates) -> Record:
    """The record of an item with only these of its motifs."""
    kept = tuple(motifs)
    names = {name for one in kept for name in recorded_sources(one, view.name, templates)}
    return Record(kept, {name: one for name, one in view.record.made_from.items() if name in names})


def copies_of(motifs: Iterable[Motif], item: str, templates: Templates) -> Sequence[str]:
    """The hidden copies from which some motifs make an item, each once."""
    return tuple(dict.fromkeys(one.name for one in all_sources(motifs, item, templates) if one.owned))


def without_copies(record: Record, item: str, templates: Templates) -> Record:
    """Return the record for new bytes: without the copies of the earlier ones."""
    changed = [one for one in record.motifs if one.template in templates and templates[one.template].keeps_copy]
    names = {name for one in changed for name in internal_sources(one, item, templates)}
    motifs = [
        replace(motif, params={name: value for name, value in motif.params.items() if name != COPY}, proven=False)
        if motif in changed
        else motif
        for motif in record.motifs
    ]
    return Record(tuple(motifs), {name: one for name, one in record.made_from.items() if name not in names})


def may_get_stale(view: ItemView, templates: Templates) -> bool:
    """Whether the sources of an item's bytes could change; otherwise no check is needed."""
    motifs = _of_relation(view.record.motifs, DERIVED, templates)
    return any(not one.external or one.max_age for one in all_sources(motifs, view.name, templates))


def _now() -> str:
    return str(int(time.time()))


def _is_older(made: str | None, seconds: float) -> bool:
    return made is not None and made.isdecimal() and int(made) + seconds < time.time()


def sources_by_name(motifs: Iterable[Motif], item: str, templates: Templates) -> Sequence[str]:
    """The sources of some motifs that are items of the storage, each once, without hidden copies."""
    sources = all_sources(motifs, item, templates)
    return tuple(dict.fromkeys(one.name for one in sources if not one.external and not one.owned))


def derived_from(motifs: Iterable[Motif], item: str, templates: Templates) -> Sequence[str]:
    """As :func:`sources_by_name`, of the derived motifs only."""
    return sources_by_name(_of_relation(motifs, DERIVED, templates), item, templates)


def _of_relation(motifs: Iterable[Motif], relation: str, templates: Templates) -> Iterable[Motif]:
    return (one for one in motifs if one.template in templates and templates[one.template].relation == relation)


class _Search:
    """One comparison: views an item once, and all items that its freshness depends on."""

    def __init__(self, views: Views, templates: Templates) -> None:
        self._views = views
        self._templates = templates
        self._known: dict[str, ItemView | None] = {}
        self._stale: dict[str, bool] = {}

    def changed(self, item: ItemView) -> frozenset[str]:
        """The sources of its derived motifs that changed since they were recorded, or are stale themselves."""
        names = derived_from(item.record.motifs, item.name, self._templates)
        self.find_all(names)
        return frozenset(name for name in names if self._has_changed(name, item.record.made_from.get(name)))

    def find_all(self, names: Sequence[str]) -> None:
        """View several items.

        :raises ExpansionError: for more items than the limit
        """
        others = [name for name in dict.fromkeys(names) if name not in self._known]
        if len(self._known) + len(others) > MOST_LOOKED_AT:
            raise ExpansionError(f"more than {MOST_LOOKED_AT} sources would have to be looked at")
        self._known.update(zip(others, self._views.view_all(others), strict=True))

    def find(self, name: str) -> ItemView | None:
        """The view of an item that :meth:`find_all` has viewed."""
        return self._known[name]

    def versions(self) -> dict[str, str]:
        """The versions of all viewed items that exist."""
        return {name: one.plain.version for name, one in self._known.items() if one is not None}

    def _has_changed(self, source: str, made_from: str | None) -> bool:
        view = self.find(source)
        if view is None:  # its bytes exist only in the item
            return False
        if source not in self._stale:
            self._stale[source] = False  # during its check, since it may be its own source
            self._stale[source] = bool(self.changed(view))
        return made_from is not None and (view.plain.version != made_from or self._stale[source])
