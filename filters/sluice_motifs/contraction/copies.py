"""Removing copies that the storage keeps for the runtime alone (``Template.keep_copy``), when nobody needs them.

A copy is noted as a source of each item that was contracted with it (``Dependents``).  It is removed when none of them
names it in its record any more: the item was deleted, or written by a client.  Nothing that a client does waits for
that, and what is removed too late costs space only.

* Copies that are young stay: one is made before the contraction that needs it has noted that.
* A contraction, and a copy of a contracted item, hold the lease of the copy on which they stand, so none begins while
  it is removed.
* While it is not known who needs copies, all stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sluice_motifs.dependencies.freshness import Templates, owned_sources
from sluice_motifs.storage.leases import HeldLeases
from sluice_motifs.storage.shim import Dependents, Leases, Shim

#: Seconds for which a copy stays that nobody needs.
GRACE: Final = 3600.0


class CopySweeper:
    """
    :param grace: longer than any contraction lasts
    """

    def __init__(
        self, shim: Shim, leases: Leases, dependents: Dependents, templates: Templates, grace: float = GRACE
    ) -> None:
        self._shim = shim
        self._leases = leases
        self._dependents = dependents
        self._templates = templates
        self._grace = grace

    def sweep(self, alive: Callable[[], None] = lambda: None) -> int:
        """Remove what nobody needs; how many copies that were.

        :param alive: called for each copy, raises to end the sweep
        :raises PeerError: when the storage is away, or it is not known who needs copies
        """
        removed = 0
        for copy, age in self._shim.scan_copies():
            alive()
            if age >= self._grace:
                removed += self._remove(copy)
        return removed

    def _remove(self, copy: str) -> bool:
        with HeldLeases(self._leases) as held:
            if not held.acquire({copy}):
                return False
            items = self._dependents.find(copy)
            if any(self._needs(item, copy) for item in items) or not held.renew():
                return False
            self._shim.delete_copy(copy)
            for item in items:
                self._dependents.remove(copy, item)
            return True

    def _needs(self, item: str, copy: str) -> bool:
        view = self._shim.view(item)
        return view is not None and copy in owned_sources(view, self._templates)
