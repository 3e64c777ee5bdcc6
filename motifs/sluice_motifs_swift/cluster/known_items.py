"""Which objects have motifs, and what is derived from which; in Redis, and found again in Swift.

All that must survive lies with the objects, and nothing that must hold rests on what is kept here: it spares a walk
over all objects, and tells what to look at when a source changes.  A Redis that lost its data is known by the mark that
a scan leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing
from sluice_core.store.store import Store

#: Items that are read at once.
PAGE: Final = 500


class RedisDerivations:
    """Implements ``Derivations``; ``ItemIndex`` notes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, sources: Sequence[str]) -> list[list[str]]:
        return self._store.run(find_derived(self._store.keys, sources))

    def remove(self, source: str, items: Sequence[str]) -> None:
        self._store.run(remove_derived(self._store.keys, source, items))


def add_item(keys: Keys, item: str, sources: Iterable[str] = ()) -> Operation[None]:
    """Note that ``item`` has motifs, or is about to, and is derived from ``sources``."""
    derived = (("SADD", keys.motif_derived(source), item) for source in sources)
    return Operation((("ZADD", keys.motif_items, 0, item), *derived), nothing)


def find_derived(keys: Keys, sources: Sequence[str]) -> Operation[list[list[str]]]:
    """For each of ``sources`` the items that are known to be derived from it, or were, sorted."""
    commands = tuple(("SMEMBERS", keys.motif_derived(source)) for source in sources)
    return Operation(commands, lambda replies: [sorted(map(_text, items)) for items in replies])


def remove_derived(keys: Keys, source: str, items: Sequence[str]) -> Operation[None]:
    """Note that ``items`` are not derived from ``source``."""
    return Operation((("SREM", keys.motif_derived(source), *items),), nothing)


def remove_item(keys: Keys, item: str) -> Operation[None]:
    """Note that it has none."""
    return Operation((("ZREM", keys.motif_items, item),), nothing)


def items_after(keys: Keys, marker: str, limit: int = PAGE) -> Operation[list[str]]:
    """Items that may have motifs, in the order of their names, behind ``marker``."""
    start = f"({marker}" if marker else "-"
    command = ("ZRANGEBYLEX", keys.motif_items, start, "+", "LIMIT", 0, limit)
    return Operation((command,), lambda replies: [_text(one) for one in replies[0]])


def is_complete(keys: Keys) -> Operation[bool]:
    """Whether a scan has noted all items, and Redis has lost none since."""
    return Operation((("EXISTS", keys.motif_scan),), lambda replies: bool(replies[0]))


def set_complete(keys: Keys) -> Operation[None]:
    """A scan has noted all items."""
    return Operation((("SET", keys.motif_scan, 1),), nothing)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
