"""Contracts anew what version 1 contracted without a copy, and then takes the marks off the containers of its sources.

Until that is done, the bytes of sources are kept before they are written (``objects.retained``).  One daemon works at a
time; what it has not finished is begun again by the next one, which finds less to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_middleware.wsgi.swift_client import SwiftClient
from sluice_motifs.api import COPY, Template
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import Renewal, release
from sluice_motifs.storage.records import ItemView
from sluice_motifs.storage.shim import Leases, Shim
from sluice_motifs_swift.daemon import GreenService
from sluice_motifs_swift.objects.containers import Containers
from sluice_rewrites.accounts import accounts_after

log = logging.getLogger(__name__)

#: What daemons lease for it; no object is called so.
_LEASE: Final = "version one"
#: Seconds until all items are looked for again, and between two tries.
_INTERVAL: Final = 2.0
_TRY_AGAIN: Final = 60.0
_LISTED: Final = 500


class VersionOne(GreenService):
    """A service that ends by itself when nothing is left to do."""

    def __init__(
        self,
        store: Store,
        client: SwiftClient,
        shim: Shim,
        containers: Containers,
        runtime: Runtime,
        leases: Leases,
        templates: Mapping[str, type[Template]],
    ) -> None:
        self._store = store
        self._client = client
        self._shim = shim
        self._containers = containers
        self._runtime = runtime
        self._leases = leases
        self._templates = templates

    def _run(self) -> None:
        while not self._runtime.items.complete:
            green.pause(_INTERVAL)
        while True:
            try:
                if self.finish():
                    return
            except SluiceError as error:
                log.warning("marks of version 1 stay: %s", error)
            except Exception:
                log.exception("marks of version 1 stay")
            green.pause(_TRY_AGAIN)

    def finish(self) -> bool:
        """Contract anew what has to be, and remove all marks; False when another daemon does, or something is left."""
        lease = self._leases.acquire(_LEASE)
        if lease is None:
            return False
        alive = Renewal(lambda: self._leases.renew(lease))
        try:
            marked = []
            for path in self._all_containers():
                alive()
                marked += [path] if self._containers.is_marked(*path) else []
            left = self._contract_anew(alive) if marked else []
            if left:
                log.warning("%d objects stand on their sources still, as `%s`", len(left), left[0])
                return False
            for path in marked:
                alive()
                self._containers.remove_mark(*path)
            if marked:
                log.info("no object stands on its source any more; %d containers had marks", len(marked))
            return True
        finally:
            release(self._leases, lease)

    def _contract_anew(self, alive: Callable[[], None]) -> list[str]:
        """The objects for which that could not be done."""
        left = []
        for name in self._runtime.items.names():
            alive()
            if not self._renew(name):
                left.append(name)
        return left

    def _renew(self, name: str) -> bool:
        """Whether an object does not stand on its source any more."""
        try:
            view = self._shim.view(name)
            if view is None or not self._stands_on_source(view):
                return True
            self._runtime.expand(name)
            self._runtime.contract(name)
            view = self._shim.view(name)
            return view is None or not self._stands_on_source(view)
        except SluiceError as error:
            log.warning("`%s` stands on its source: %s", name, error)
            return False

    def _stands_on_source(self, view: ItemView) -> bool:
        known = [self._templates[one.template] for one in view.record.motifs if one.template in self._templates]
        copied = any(COPY in one.params for one in view.record.motifs)
        return view.contracted and not copied and any(kind.keeps_copy for kind in known)

    def _all_containers(self) -> Iterator[tuple[str, str]]:
        marker = ""
        while accounts := self._store.run(accounts_after(self._store.keys, marker, _LISTED)):
            for account in accounts:
                for page in self._client.list_containers(account, "", _LISTED):
                    yield from ((account, row["name"]) for row in page)
            marker = accounts[-1]
