"""Letting a second item give up its bytes to a copy that was kept for a first one.

An item and its duplicate, or a file and its compressed twin, save nothing while one of them has its bytes beside the
copy.  So when one was contracted, the other gets the template that only keeps a copy, and is contracted with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from sluice_core.errors import SluiceError
from sluice_motifs.api import COPY, TIER
from sluice_motifs.dependencies.freshness import Templates
from sluice_motifs.storage.records import MOST_MOTIFS, ItemView, Motif
from sluice_motifs.storage.shim import Shim

log = logging.getLogger(__name__)

#: Whether whoever attached a motif may have another item give up its bytes.
MayShare = Callable[[Motif, str], bool]
_HERE: Final = ""


class CopySharing:
    """
    :param attach: attaches a motif to an item
    :param contract: gives up the bytes of an item
    """

    def __init__(
        self,
        shim: Shim,
        templates: Templates,
        attach: Callable[[str, Motif], object],
        contract: Callable[[str], object],
        may_share: MayShare,
    ) -> None:
        self._shim = shim
        self._templates = templates
        self._attach = attach
        self._contract = contract
        self._may_share = may_share

    def concerns(self, view: ItemView) -> bool:
        """Whether another item may have the bytes of a copy of ``view``."""
        try:
            return any(COPY in motif.params and self._other(motif) for motif in view.record.motifs)
        except SluiceError:
            return False

    def share(self, name: str) -> None:
        """Contract what has the bytes of the copies of an item that was contracted, where that can be."""
        try:
            view = self._shim.view(name)
            for motif in view.record.motifs if view is not None and view.contracted else ():
                other = self._other(motif) if COPY in motif.params else ""
                if other and TIER in self._templates and self._may_share(motif, other):
                    self._give_up(other, str(motif.params[COPY]), motif.identity)
        except SluiceError as error:
            log.info("what has the same bytes as the copy of `%s` keeps them: %s", name, error)

    def _other(self, motif: Motif) -> str:
        kind = self._templates.get(motif.template)
        return "" if kind is None else kind(motif.params).shares_copy_with()

    def _give_up(self, name: str, copy: str, identity: str) -> None:
        seen, kept = self._shim.view(name), self._shim.view(copy)
        if seen is None or kept is None or seen.contracted or seen.pinned or not _same_bytes(seen, kept):
            return
        motifs = seen.record.motifs
        if any(COPY in one.params for one in motifs):
            return  # it was expanded since: somebody reads it
        if all(one.template != TIER for one in motifs) and len(motifs) < MOST_MOTIFS:
            self._attach(name, Motif(TIER, {"policy": _HERE}, identity))
            self._contract(name)


def _same_bytes(one: ItemView, other: ItemView) -> bool:
    """As far as size and digest say; the copy is named by a stronger digest, which decides."""
    if not one.plain.digest:
        return one.plain.size == other.plain.size
    return one.plain.size == other.plain.size and (one.plain.algorithm, one.plain.digest) == (
        other.plain.algorithm,
        other.plain.digest,
    )
