"""Objects with motifs: those recorded in Redis, or all that a walk over the storage finds.

All data that must survive are stored with the objects, and correctness does not depend on Redis: it saves a walk over
all objects, and names the items to check when a source changes.  A Redis that lost its data lacks the mark that a scan
writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import Store
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_motifs.dependencies.freshness import Templates, derived_from
from sluice_motifs.items import ItemTable
from sluice_motifs.storage.records import Record
from sluice_motifs_swift.objects.containers import list_containers, list_objects

#: Items that are read at once.
PAGE: Final = 500


class RedisDerivations:
    """Implements ``Derivations``; ``ItemIndex`` writes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, sources: Sequence[str]) -> list[list[str]]:
        return self._store.run(find_derived(self._store.keys, sources))

    def remove(self, source: str, items: Sequence[str]) -> None:
        self._store.run(remove_derived(self._store.keys, source, items))


def add_item(keys: Keys, item: str, sources: Iterable[str] = ()) -> Operation[None]:
    """Record that ``item`` has motifs, or is about to, and is derived from ``sources``."""
    derived = (("SADD", keys.motif_derived(source), item) for source in sources)
    return Operation((("ZADD", keys.motif_items, 0, item), *derived), nothing)


def find_derived(keys: Keys, sources: Sequence[str]) -> Operation[list[list[str]]]:
    """For each of ``sources`` the recorded items that are derived from it, or once were, sorted."""
    commands = tuple(("SMEMBERS", keys.motif_derived(source)) for source in sources)
    return Operation(commands, lambda replies: [sorted(map(_text, items)) for items in replies])


def remove_derived(keys: Keys, source: str, items: Sequence[str]) -> Operation[None]:
    """Record that ``items`` are not derived from ``source``."""
    return Operation((("SREM", keys.motif_derived(source), *items),), nothing)


def remove_item(keys: Keys, item: str) -> Operation[None]:
    """Record that it has no motifs."""
    return Operation((("ZREM", keys.motif_items, item),), nothing)


def items_after(keys: Keys, marker: str, limit: int = PAGE) -> Operation[list[str]]:
    """Items that may have motifs, in the order of their names, behind ``marker``."""
    start = f"({marker}" if marker else "-"
    command = ("ZRANGEBYLEX", keys.motif_items, start, "+", "LIMIT", 0, limit)
    return Operation((command,), lambda replies: [_text(one) for one in replies[0]])


def is_complete(keys: Keys) -> Operation[bool]:
    """Whether a scan has recorded all items, and Redis has lost none since."""
    return Operation((("EXISTS", keys.motif_scan),), lambda replies: bool(replies[0]))


def set_complete(keys: Keys) -> Operation[None]:
    """Record that a scan has recorded all items."""
    return Operation((("SET", keys.motif_scan, 1),), nothing)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


class ItemIndex:
    """:param client: lists containers and objects for the walk"""

    def __init__(self, store: Store, client: SwiftClient, templates: Templates) -> None:
        self._store = store
        self._client = client
        self._templates = templates
        #: the table of the runtime, if there is one
        self.items: ItemTable | None = None

    def keep(self, name: str) -> None:
        """Keep an object in the table that could not be viewed."""
        if self.items is not None:
            self.items.keep(name)

    def add(self, name: str, record: Record) -> None:
        """Record an object before it has motifs, with its sources.

        :raises PeerError: when Redis is unreachable
        """
        sources = derived_from(record.motifs, name, self._templates)
        self._store.run(add_item(self._store.keys, name, sources))

    def remove(self, name: str) -> None:
        """Record an object without motifs."""
        self._store.run(remove_item(self._store.keys, name))

    def names(self) -> Iterator[str]:
        """Objects that may have motifs: those in the table, and those recorded in Redis.

        While Redis may have lost some, all objects of the accounts that agents found.
        """
        known = set() if self.items is None else set(self.items.names())
        yield from sorted(known)
        if not self._store.run(is_complete(self._store.keys)):
            for account, container in list_containers(self._store, self._client):
                yield from (name for name in list_objects(self._client, account, container) if name not in known)
            return
        marker = ""
        while page := self._store.run(items_after(self._store.keys, marker)):
            yield from (name for name in page if name not in known)
            marker = page[-1]
