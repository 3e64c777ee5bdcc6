"""Whether the bytes of a derived item are out of date: its sources have other versions than those they were made from.

Versions are compared on each open, from the newest copies, and nothing else decides: no message that something has
changed, which may be lost, and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sluice_motifs.api import DERIVED
from sluice_motifs.graph import Templates, sources_of
from sluice_motifs.records import ItemView, Motif
from sluice_motifs.shim import Shim


def dependencies(shim: Shim, view: ItemView, templates: Templates) -> dict[str, str]:
    """The versions now of all sources from which the motifs of an item derive it; those that do not exist are left out."""
    names = dict.fromkeys(name for motif in view.record.motifs for name in _watched(motif, view.name, templates))
    versions = {name: shim.version(name) for name in names}
    return {name: version for name, version in versions.items() if version is not None}


def is_stale(shim: Shim, view: ItemView, templates: Templates) -> bool:
    """Whether a source has another version than the bytes of the item were made from.

    A source that is gone makes nothing stale: the item is all that is left of it.
    """
    return differs(view.record.made_from, dependencies(shim, view, templates))


def differs(made_from: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a version that was recorded is another one now."""
    return any(now.get(name, version) != version for name, version in made_from.items())


def _watched(motif: Motif, item: str, templates: Templates) -> Iterator[str]:
    template = templates.get(motif.template)
    if template is None or template.relation != DERIVED:
        return
    for source in sources_of(motif, item, templates) or ():
        if not source.external:
            yield source.name
