"""Whether a motif may be attached to an item, as far as its sources go."""

from __future__ import annotations

from typing import Final

from sluice_core.errors import CallerError, Conflict
from sluice_motifs.api import DERIVED
from sluice_motifs.dependencies.availability import DEEPEST
from sluice_motifs.dependencies.freshness import Templates, find_template, is_exact, sources_by_name, sources_of
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Dependents, Shim

#: Sources of one motif.
MOST_SOURCES: Final = 32


def check_sources(view: ItemView, motif: Motif, shim: Shim, dependents: Dependents, templates: Templates) -> None:
    """
    :raises NotFound: when there is no such template
    :raises CallerError: when the motif reads too much
    :raises Conflict: when the item would change by itself while others need it as it is
    """
    kind = find_template(motif.template, templates)
    sources = sources_of(motif, view.name, templates) or ()
    if len(sources) > MOST_SOURCES:
        raise CallerError(f"`{view.name}` would have {len(sources)} sources, expected at most {MOST_SOURCES}")
    names = {one.name for one in sources if not one.external}
    if view.name in names:
        raise CallerError(f"`{view.name}` would be made from itself")
    if kind.relation == DERIVED:
        exact = is_exact(motif, view.name, templates)
        others = [one for one in dependents.find(view.name) if not exact or {one} != names]
        if others:
            raise Conflict(f"`{view.name}` is needed as it is by `{others[0]}`, expand that first")
    _check_depth(view.name, names, shim, templates)


def _check_depth(name: str, names: set[str], shim: Shim, templates: Templates) -> None:
    seen, level = {name}, names
    for _ in range(DEEPEST):
        level = level - seen
        seen |= level
        found = [one for one in map(shim.view, sorted(level)) if one is not None]
        level = {one for item in found for one in sources_by_name(item.record.motifs, item.name, templates)}
        if not level - seen:
            return
    raise CallerError(f"`{name}` would be made through more than {DEEPEST} others, one from the other")
