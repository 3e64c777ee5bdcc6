"""Whether a motif may be attached to an item with its sources, and from which versions the bytes count as made.

A client that makes an item reads its sources some time before it attaches the motif.  The parameter ``versions`` of
any derived motif names the versions that it read: the ETags of the sources, in the order in which the motif names
them.  A source that has another ETag now was changed since, and is recorded so: the item is stale at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sluice_core.describe import Scalar
from sluice_core.errors import CallerError
from sluice_motif_control.actions import VERSIONS
from sluice_motifs.api import DERIVED, Template
from sluice_motifs.dependencies.availability import DEEPEST
from sluice_motifs.dependencies.freshness import (
    SourceState,
    Templates,
    derived_from,
    find_template,
    internal_sources,
    recorded_sources,
    sources_of,
)
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import Shim, Views

#: The most sources of one motif.
MOST_SOURCES: Final = 32
#: The version recorded for a source that has changed since it was read: that of no object.
ANOTHER: Final = "another"
_ETAG: Final = re.compile("[0-9a-f]{32,128}")


def split_versions(kind: type[Template], params: Mapping[str, Scalar]) -> tuple[Mapping[str, Scalar], tuple[str, ...]]:
    """Separate the template's own parameters from the ETags of the sources.

    :raises CallerError: for values that are no ETags, or a template that takes none
    """
    if VERSIONS not in params or kind.info.parameter(VERSIONS) is not None:
        return params, ()
    if kind.relation != DERIVED:
        raise CallerError(f"template `{kind.info.keyword}` takes no `{VERSIONS}`: it makes no new content")
    etags = tuple(one.strip().strip('"').lower() for one in str(params[VERSIONS]).split(","))
    for etag in etags:
        if not _ETAG.fullmatch(etag):
            raise CallerError(f"`{VERSIONS}` has `{etag:.80}`, expected the ETag of each source, between commas")
    return {name: value for name, value in params.items() if name != VERSIONS}, etags


def made_from(item: str, motif: Motif, state: SourceState, views: Views, templates: Templates) -> dict[str, str]:
    """Return the versions of sources to record with an item to which a motif is attached.

    :param state: its sources, all of which exist, as viewed through ``views``
    :param views: in which each item is viewed once
    :raises CallerError: when the motif does not name one version for each source, or one that cannot be compared
    """
    versions = {name: state.versions[name] for name in recorded_sources(motif, item, templates)}
    if not motif.versions:
        return versions
    names = internal_sources(motif, item, templates)
    if len(motif.versions) != len(names):
        raise CallerError(f"`{VERSIONS}` has {len(motif.versions)} ETags, expected {len(names)}, one for each source")
    for name, etag, view in zip(names, motif.versions, views.view_all(names), strict=True):
        digest = "" if view is None else view.plain.digest
        if not digest:
            raise CallerError(f"source `{name}` has no ETag that `{VERSIONS}` could be compared with")
        if digest != etag:
            versions[name] = ANOTHER
    return versions


def check_sources(view: ItemView, motif: Motif, shim: Shim, templates: Templates) -> None:
    """
    :raises CallerError: when the motif reads too many sources, or an item that is derived from this one
    """
    sources = sources_of(motif, view.name, templates)
    if len(sources) > MOST_SOURCES:
        raise CallerError(f"`{view.name}` would have {len(sources)} sources, expected at most {MOST_SOURCES}")
    names = {one.name for one in sources if not one.external}
    if view.name in names:
        raise CallerError(f"`{view.name}` would be made from itself")
    if find_template(motif.template, templates).relation == DERIVED:
        _check_derivation(view.name, names, shim, templates)


def _check_derivation(name: str, names: set[str], shim: Shim, templates: Templates) -> None:
    """Refuse a cycle of derivations, which would always be stale; preserving motifs rely on copies."""
    seen, level = set[str](), names
    for _ in range(DEEPEST):
        level = level - seen
        seen |= level
        found = [one for one in map(shim.view, sorted(level)) if one is not None]
        derived = {item.name: derived_from(item.record.motifs, item.name, templates) for item in found}
        through = [one for one, sources in derived.items() if name in sources]
        if through:
            raise CallerError(f"`{name}` would be made from itself, through `{through[0]}`")
        level = {one for sources in derived.values() for one in sources}
        if not level - seen:
            return
    raise CallerError(f"`{name}` would be made through more than {DEEPEST} others, one from the other")
