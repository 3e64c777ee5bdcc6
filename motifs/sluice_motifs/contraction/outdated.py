"""Contraction of stale items, soon after a source has changed: the storage reports the items that clients changed.

Bytes of a derived item that were made from an older version of a source are never read again, but use space and
count as stored.  All items derived from the changed ones are checked, directly or through others.

A report may be late or lost; correctness does not need it: each open compares versions (``dependencies.freshness``).
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

#: Items that are checked for one call; further ones are detected when they are read.
MOST: Final = 100_000
#: How often an item is tried that is leased, or one of its sources, and seconds between the tries.
_TRIES: Final = 20
_TRY_AGAIN: Final = 0.1


class OutdatedContractor:
    """Contracts one item at a time, since items of one source need the same lease.

    :param contract: contracts an item, as ``Runtime.contract`` does
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
        """Contract stale items after items were changed; return their number.

        :raises PeerError: when the items derived from them are unknown
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
        """Whether an item that may be derived from ``sources`` was contracted."""
        try:
            view = self._shim.view(item)
            motifs = view.record.motifs if view is not None else ()
            needed = derived_from(motifs, item, self._templates)
            state = self._freshness.check_sources(view) if view is not None and needed else None
            for source in sources:
                # the items derived from a deleted item are checked when they are read
                if state is None or source not in needed or source in state.gone:
                    self._derivations.remove(source, [item])
            if view is None or view.contracted or state is None or not state.stale:
                return False
            return self._contracted(item)
        except PeerError as error:
            log.warning("`%s` is not checked, though a source has changed: %s", item, error)
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
