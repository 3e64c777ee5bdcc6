"""Objects with motifs: those that Redis knows, or all that a walk over the storage finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sluice_core.store.store import Store
from sluice_middleware.wsgi.swift_client import SwiftClient
from sluice_motifs.dependencies.freshness import Templates, derived_from
from sluice_motifs.items import ItemTable
from sluice_motifs.storage.records import Record
from sluice_motifs_swift.cluster import known_items
from sluice_rewrites.accounts import accounts_after

_LISTED: Final = 500


class ItemIndex:
    """:param client: lists what the walk goes over"""

    def __init__(self, store: Store, client: SwiftClient, templates: Templates) -> None:
        self._store = store
        self._client = client
        self._templates = templates
        #: the table of the runtime, when there is one
        self.items: ItemTable | None = None

    def keep(self, name: str) -> None:
        """An object could not be looked at, and stays in the table as it was."""
        if self.items is not None:
            self.items.keep(name)

    def add(self, name: str, record: Record) -> None:
        """Note an object before it has motifs, and what it is derived from.

        :raises PeerError: when Redis is away
        """
        sources = derived_from(record.motifs, name, self._templates)
        self._store.run(known_items.add_item(self._store.keys, name, sources))

    def remove(self, name: str) -> None:
        """Note an object that has none."""
        self._store.run(known_items.remove_item(self._store.keys, name))

    def names(self) -> Iterator[str]:
        """Objects that may have motifs: those in the table, and those that Redis knows.

        While Redis may have lost some, all there are in accounts that agents found.
        """
        known = set() if self.items is None else set(self.items.names())
        yield from sorted(known)
        if not self._store.run(known_items.is_complete(self._store.keys)):
            yield from (name for name in self._walk() if name not in known)
            return
        marker = ""
        while page := self._store.run(known_items.items_after(self._store.keys, marker)):
            yield from (name for name in page if name not in known)
            marker = page[-1]

    def _walk(self) -> Iterator[str]:
        marker = ""
        while accounts := self._store.run(accounts_after(self._store.keys, marker, _LISTED)):
            for account in accounts:
                for containers in self._client.list_containers(account, "", _LISTED):
                    for container in containers:
                        yield from self._objects(account, container["name"])
            marker = accounts[-1]

    def _objects(self, account: str, container: str) -> Iterator[str]:
        for page in self._client.list_objects(account, container, "", "", _LISTED):
            for row in page:
                yield f"{account}/{container}/{row['name']}"
