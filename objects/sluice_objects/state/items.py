"""The sorted key-value part of a state, and its changes during a call."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sluice_objects.api import LARGEST_STATE, StateTooLarge

#: Changes of one call up to which the order of keys is kept up to date rather than sorted anew when it is needed.
_FEW: Final = 64
#: Bytes that MessagePack adds to a key and its value at most.
_OVERHEAD: Final = 10
#: Raises an error where the content must not change.
Gate = Callable[[], None]


def end_of_prefix(prefix: bytes) -> bytes | None:
    """The smallest key above all that begin with ``prefix``; None when there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


class SortedItems(Mapping[bytes, bytes]):
    """Keys and values that never change; the keys are sorted when their order is needed for the first time."""

    __slots__ = ("_order", "_size", "plain")

    def __init__(self, plain: dict[bytes, bytes], order: list[bytes] | None = None, size: int | None = None) -> None:
        #: Nobody changes it.
        self.plain = plain
        self._order = order
        self._size = size

    @classmethod
    def of(cls, items: Mapping[bytes, bytes]) -> SortedItems:
        """The same items, which are not copied if they are sorted ones."""
        return items if isinstance(items, cls) else cls(dict(items))

    def __getitem__(self, key: bytes) -> bytes:
        return self.plain[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __eq__(self, other: object) -> bool:
        return self.plain == (other.plain if isinstance(other, SortedItems) else other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def order(self) -> list[bytes]:
        """The sorted keys, which nobody changes."""
        if self._order is None:
            self._order = sorted(self.plain)
        return self._order

    @property
    def size(self) -> int:
        """Bytes in the encoded state at most."""
        if self._size is None:
            lengths = sum(map(len, self.plain)) + sum(map(len, self.plain.values()))
            self._size = lengths + _OVERHEAD * len(self.plain)
        return self._size

    def changed(self, changes: Mapping[bytes, bytes | None]) -> SortedItems:
        """The items with ``changes``: new values, and None for keys that are removed, each of which is there."""
        plain = self.plain.copy()
        order = self._order.copy() if self._order is not None and len(changes) <= _FEW else None
        size = self.size
        for key, value in changes.items():
            size += _size(key, value) - _size(key, plain.get(key))
            if value is None:
                del plain[key]
                if order is not None:
                    del order[bisect_left(order, key)]
            else:
                if order is not None and key not in plain:
                    insort(order, key)
                plain[key] = value
        return SortedItems(plain, order, size)


class ItemsOverlay:
    """:class:`~sluice_objects.api.Items` of one call: what the call changed lies over the items of the state."""

    def __init__(self, items: Mapping[bytes, bytes], gate: Gate) -> None:
        self._gate = gate
        self.reset(items)

    def reset(self, items: Mapping[bytes, bytes]) -> None:
        """Have ``items``, and no changes."""
        self._given = items
        self._base = SortedItems.of(items)
        self._changes: dict[bytes, bytes | None] = {}
        self._count = len(items)
        self._bytes = 0

    def freeze(self) -> Mapping[bytes, bytes]:
        """The items now; the given ones when they did not change."""
        return self._base.changed(self._changes) if self._changes else self._given

    def __len__(self) -> int:
        return self._count

    def get(self, key: bytes) -> bytes | None:
        return self._changes[key] if key in self._changes else self._base.plain.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        for what, given in (("key", key), ("value", value)):
            if type(given) is not bytes:
                raise TypeError(f"a {what} is `{type(given).__name__}`, expected bytes")
        self._gate()
        added = self.get(key) is None
        self._change(key, value)
        self._count += added

    def remove(self, key: bytes) -> bool:
        self._gate()
        if self.get(key) is None:
            return False
        self._change(key, None)
        self._count -= 1
        return True

    def _change(self, key: bytes, value: bytes | None) -> None:
        same = self._base.plain.get(key) == value
        size = self._bytes - _size(key, self._changes.get(key)) + (0 if same else _size(key, value))
        if size > LARGEST_STATE:
            raise StateTooLarge(size)
        self._bytes = size
        if same:
            self._changes.pop(key, None)
        else:
            self._changes[key] = value

    def range(
        self, start: bytes = b"", end: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        order, stored = self._base.order, self._base.plain
        places = range(bisect_left(order, start), len(order) if end is None else bisect_left(order, end))
        added = [key for key in self._changes if key >= start and (end is None or key < end) and key not in stored]
        added.sort(reverse=reverse)
        kept = map(order.__getitem__, reversed(places) if reverse else places)
        return self._with_values(heapq.merge(kept, added, reverse=reverse) if added else kept)

    def prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.range(prefix, end_of_prefix(prefix))

    def _with_values(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for key in keys:
            value = self.get(key)
            if value is not None:
                yield key, value


def _size(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value) + _OVERHEAD
