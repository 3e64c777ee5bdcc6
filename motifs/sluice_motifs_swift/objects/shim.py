"""The shim of Swift: objects as items of the motif runtime.

A contracted object is a Swift object without bytes; its metadata describe it (``sluice_middleware.wsgi.sysmeta``).
It is listed, versioned, replicated and deleted by Swift as any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.store.store import Store
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.motifs.object_views import ObjectViews, view_concurrently
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_middleware.wsgi.response import App
from sluice_motifs.api import Template
from sluice_motifs.dependencies.freshness import is_exact
from sluice_motifs.storage.records import ItemView, Record
from sluice_motifs.storage.shim import Views
from sluice_motifs_swift.objects.containers import Containers
from sluice_motifs_swift.objects.copies import ObjectCopies
from sluice_motifs_swift.objects.item_index import ItemIndex
from sluice_motifs_swift.objects.reads import ObjectReads
from sluice_motifs_swift.objects.references import ObjectProofs, ReferenceRows
from sluice_motifs_swift.objects.shared_calls import RequestCoalescer
from sluice_motifs_swift.objects.writes import ObjectWrites

log = logging.getLogger(__name__)

#: Containers of parts of large objects, as S3 and Swift's client name them.
_SEGMENTS: Final = ("+segments", "_segments")


class _ItemViews(Views):
    """Objects as they are stored, and why some must not be contracted.

    :param pinned: returns why an object with motifs must not be contracted; empty when it may
    """

    def __init__(self, view_stored: Callable[[str], ItemView | None], pinned: Callable[[ItemView], str]) -> None:
        self.view_stored = view_stored
        self._pinned = pinned

    def view(self, name: str) -> ItemView | None:
        view = self.view_stored(name)
        if view is None or view.contracted or view.pinned or not view.record.motifs:
            return view
        return replace(view, pinned=self._pinned(view))

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        return view_concurrently(self.view, names)


class SwiftShim:
    """Implements ``Shim``.

    :param handler: of Swift's proxy application below gatekeeper and authorization
    :param uploads: as of ``ObjectWrites``
    :param final: Swift's proxy application itself, which has the rings
    :param suspended: returns why no object may be contracted now; empty when objects may
    :param limiter: limits reads and writes to the bandwidth of accounts, as a proxy does
    :param problem: returns why policies are not known, so that no bytes are stored; empty when they are
    """

    def __init__(
        self,
        handler: ObjectHandler,
        uploads: App,
        containers: Containers,
        index: ItemIndex,
        templates: Mapping[str, type[Template]],
        store: Store,
        limiter: BandwidthLimiter,
        final: Any,
        suspended: Callable[[], str] = str,
        problem: Callable[[], str] = str,
    ) -> None:
        self.reads = ObjectReads(handler, containers, limiter)
        self._writes = ObjectWrites(handler, uploads, limiter, problem)
        self._copies = ObjectCopies(
            SwiftClient(handler.app),
            store,
            self.reads,
            self._writes,
            ReferenceRows(final.container_ring),
            ObjectProofs(SwiftClient(uploads), final),  # which also uses handoffs
        )
        #: Shared views: many clients may open one object at once, with its sources.
        self._views, self._unhurried = (
            _ItemViews(RequestCoalescer(ObjectViews(handler.app, unhurried=one).view), self._pinned)
            for one in (False, True)
        )
        self._containers = containers
        self._index = index
        self._templates = templates
        self._suspended = suspended

    @property
    def copies(self) -> ObjectCopies:
        return self._copies

    @property
    def unhurried(self) -> Views:
        return self._unhurried

    def view(self, name: str) -> ItemView | None:
        return self._views.view(name)

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        return self._views.view_all(names)

    def _pinned(self, view: ItemView) -> str:
        account, container, _ = view.name.split("/", 2)
        if self._containers.is_synchronized(account, container):
            return "its container is synchronized to another"
        exact = all(is_exact(one, view.name, self._templates) for one in view.record.motifs)
        if container.endswith(_SEGMENTS) and not exact:
            return "parts of large objects take exact motifs only"
        return self._suspended()

    def scan(self) -> Iterator[ItemView]:
        for name in self._index.names():
            try:
                view = self.view(name)
            except PeerError as error:  # it is damaged, or its servers are unreachable: its state stays
                log.warning("`%s` is not looked at: %s", name, error)
                self._index.keep(name)
                continue
            if view is not None and view.record.motifs:
                self._index.add(name, view.record)
                yield view
            else:
                self._index.remove(name)

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        return self.reads.read(name, reader, chain, version)

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        return self.reads.own_bytes(seen)

    def annotate(self, seen: ItemView, record: Record) -> bool:
        self._note(seen, record)
        if not self._writes.post(seen, record):
            return False
        now = self._views.view_stored(seen.name)  # it may be on a data file that has a newer record
        return now is not None and now.record == record and now.plain == seen.plain

    def contract(self, seen: ItemView, record: Record) -> bool:
        self._note(seen, record)
        return self._writes.contract(seen, record)

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        return self._writes.expand(seen, record, pieces)

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        return self._writes.replace(seen, record, pieces)

    def _note(self, seen: ItemView, record: Record) -> None:
        if record.motifs and record.motifs != seen.record.motifs:
            self._index.add(seen.name, record)
