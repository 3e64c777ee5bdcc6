"""A database as it was at one moment, contracted values included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, TypedDict, Unpack

from sluice_motifs.dependencies.freshness import Templates
from sluice_motifs_kv.shim import SnapshotShim
from sluice_motifs_kv.store import StoreSnapshot


class Bounds(TypedDict, total=False):
    """Which keys an iterator yields, as of ``plyvel.DB.iterator``: of a prefix, or from ``start`` to ``stop``."""

    start: bytes | None
    stop: bytes | None
    include_start: bool
    include_stop: bool
    prefix: bytes | None
    reverse: bool


class Snapshot:
    """Reads a database as it was; close it, so that LevelDB may drop what it keeps.

    A value that was contracted then is made from its sources as they were then. That is not stored, and no policy
    counts it.
    """

    def __init__(self, reader: StoreSnapshot, templates: Templates) -> None:
        self._reader = reader
        self._shim = SnapshotShim(reader, templates)

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of a key, else ``default``.

        :raises ExpansionError: when its bytes cannot be made
        """
        value = self._shim.get(key)
        return default if value is None else value

    def iterator(
        self, *, include_key: bool = True, include_value: bool = True, **bounds: Unpack[Bounds]
    ) -> Iterator[Any]:
        """Pairs of keys and values in the order of the keys, or only one of both.

        :raises CallerError: when the bounds contradict each other
        :raises ExpansionError: when the bytes of a value cannot be made
        """
        keys = self._held(self._reader.keys(bounds))
        if not include_value:
            return keys if include_key else (None for _ in keys)
        pairs = ((key, self._shim.get(key)) for key in keys)
        return pairs if include_key else (value for _, value in pairs)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()

    def close(self) -> None:
        """Read no more."""
        self._reader.close()

    def __del__(self) -> None:
        # A shim and its runtime refer to each other.  A snapshot of plyvel that is open when the garbage collector
        # clears such a circle looks at a database that is cleared already, and crashes (plyvel 1.5.1, Python 3.13).
        self.close()

    def _held(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        """``keys``, for whose sake the snapshot stays open."""
        yield from keys

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
