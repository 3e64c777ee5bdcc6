"""Giving up bytes that are out of date, soon after a source has changed: the storage reports what clients changed.

Bytes of a derived item that were made from an older version of a source are never read again, but take room and
count as stored.  All that is derived from what was changed is looked at, and what is derived from that.

A report may be late, or lost, and is not needed: each open compares versions (``dependencies.freshness``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from sluice_core.errors import PeerError, SluiceError
from sluice_motifs.contraction.contractor import BUSY, CONTRACTED
from sluice_motifs.dependencies.freshness import Freshness, Templates, derived_from
from sluice_motifs.storage.shim import Derivations, Shim

log = logging.getLogger(__name__)

#: Items that are looked at for one call; what is beyond is found when it is read.
MOST: Final = 100_000
#: How often an item is tried at which somebody works, or at one of its sources, and seconds in between.
_TRIES: Final = 20
_TRY_AGAIN: Final = 0.1


class OutdatedContractor:
    """Contracts one item at a time, since items of one source need the same lease.

    :param contract: gives up the bytes of an item; as ``Runtime.contract``
    """

    def __init__(
        self,
        shim: Shim,
        templates: Templates,
        derivations: Derivations,
        contract: Callable[[str], str],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._shim = shim
        self._templates = templates
        self._freshness = Freshness(shim, templates)
        self._derivations = derivations
        self._contract = contract
        self._pause = pause

    def contract(self, changed: Sequence[str]) -> int:
        """Give up what is out of date since items were changed; how many items that were.

        :raises PeerError: when it is not known what is derived from them
        """
        level, contracted = list(dict.fromkeys(changed)), 0
        asked, seen = set(level), set[str]()
        while level and len(seen) < MOST:
            sources: dict[str, list[str]] = {}
            for source, items in zip(level, self._derivations.find(level), strict=True):
                for item in items:
                    sources.setdefault(item, []).append(source)
            unseen = [item for item in sources if item not in seen][: MOST - len(seen)]
            seen.update(unseen)
            contracted += sum(self._check_item(item, sources[item]) for item in unseen)
            level = [item for item in unseen if item not in asked]
            asked.update(level)
        return contracted

    def _check_item(self, item: str, sources: Sequence[str]) -> bool:
        """Whether an item was contracted that counts as derived from ``sources``."""
        try:
            view = self._shim.view(item)
            motifs = view.record.motifs if view is not None else ()
            needed = derived_from(motifs, item, self._templates)
            state = self._freshness.check_sources(view) if view is not None and needed else None
            for source in sources:
                # what is derived from an item that is gone is looked at when it is read
                if state is None or source not in needed or source in state.gone:
                    self._derivations.remove(source, [item])
            if view is None or view.contracted or state is None or not state.stale:
                return False
            return self._contracted(item)
        except PeerError as error:
            log.warning("`%s` is not looked at, though a source has changed: %s", item, error)
        except SluiceError as error:
            log.info("what `%s` was stays: %s", item, error)
        return False

    def _contracted(self, item: str) -> bool:
        for _ in range(_TRIES):
            outcome = self._contract(item)
            if outcome != BUSY:
                break
            self._pause(_TRY_AGAIN)
        return outcome == CONTRACTED
