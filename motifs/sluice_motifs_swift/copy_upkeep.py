"""Maintains the hidden copies: removes those that no object needs, and makes those that version 1 did not make.

One daemon at a time does either; the next one starts unfinished work again, and finds less to do.

Version 1 contracted objects that rely on their sources, and marked the containers of these.  Such objects are
contracted again with copies of their own, and then the marks are removed.  Until that is done, the bytes of sources are
secured before they are written (``objects.containers``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.store.store import Store
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_motifs.api import COPY, Template
from sluice_motifs.contraction.copies import CopySweeper
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import HeldLeases, Renewal
from sluice_motifs.storage.records import ItemView
from sluice_motifs.storage.shim import Leases, Shim
from sluice_motifs_swift.daemon import PeriodicService
from sluice_motifs_swift.objects.containers import Containers, list_containers

log = logging.getLogger(__name__)

#: The names that daemons lease for this work; no object has such a name.
_SWEEP_LEASE: Final = "sweep of copies"
_VERSION_ONE_LEASE: Final = "version one"
#: Seconds until the next check whether all items are known, and between two tries.
_INTERVAL: Final = 2.0
_TRY_AGAIN: Final = 60.0


class CopySweep(PeriodicService):
    """A service: removes copies that no object needs.

    :param interval: seconds between two sweeps
    """

    failure = "unneeded copies are not removed"

    def __init__(self, sweeper: CopySweeper, leases: Leases, interval: float) -> None:
        self.delay = self.retry = interval
        self._sweeper = sweeper
        self._leases = leases

    def step(self) -> float:
        with HeldLeases(self._leases) as held:
            removed = self._sweeper.sweep(Renewal(held.renew)) if held.acquire({_SWEEP_LEASE}) else 0
        if removed:
            log.info("%d unneeded copies were removed", removed)
        return self.delay


@dataclass(eq=False)
class VersionOne(PeriodicService):
    """A service: makes copies for objects that version 1 contracted without one; ends when no such object is left."""

    failure = "marks of version 1 stay"
    retry = _TRY_AGAIN

    store: Store
    client: SwiftClient
    shim: Shim
    containers: Containers
    runtime: Runtime
    leases: Leases
    templates: Mapping[str, type[Template]]

    def step(self) -> float | None:
        if not self.runtime.items.complete:
            return _INTERVAL
        return None if self.finish() else _TRY_AGAIN

    def finish(self) -> bool:
        """Contract objects again, and remove all marks; return False when another daemon does, or objects are left."""
        with HeldLeases(self.leases) as held:
            if not held.acquire({_VERSION_ONE_LEASE}):
                return False
            alive = Renewal(held.renew)
            marked = []
            for path in list_containers(self.store, self.client):
                alive()
                marked += [path] if self.containers.is_marked(*path) else []
            left = self._contract_anew(alive) if marked else []
            if left:
                log.warning("%d objects still rely on their sources, such as `%s`", len(left), left[0])
                return False
            for path in marked:
                alive()
                self.containers.remove_mark(*path)
            if marked:
                log.info("no object relies on its source any more; %d containers had marks", len(marked))
            return True

    def _contract_anew(self, alive: Callable[[], None]) -> list[str]:
        """Contract objects again; return those for which that failed."""
        left = []
        for name in self.runtime.items.names():
            alive()
            if not self._renew(name):
                left.append(name)
        return left

    def _renew(self, name: str) -> bool:
        """Contract an object again; return whether it no longer relies on its source."""
        try:
            view = self.shim.view(name)
            if view is None or not self._stands_on_source(view):
                return True
            self.runtime.expand(name)
            self.runtime.contract(name)
            view = self.shim.view(name)
            return view is None or not self._stands_on_source(view)
        except SluiceError as error:
            log.warning("`%s` still relies on its source: %s", name, error)
            return False

    def _stands_on_source(self, view: ItemView) -> bool:
        known = [self.templates[one.template] for one in view.record.motifs if one.template in self.templates]
        copied = any(COPY in one.params for one in view.record.motifs)
        return view.contracted and not copied and any(kind.keeps_copy for kind in known)
