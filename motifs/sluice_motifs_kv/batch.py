"""Writes that are made together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

#: A key with its value; None deletes it.
Write = tuple[bytes, bytes | None]


class WriteBatch:
    """Collects writes; as a context manager it makes them at its end.

    :param transaction: as a context manager make none when an exception ends it
    """

    def __init__(self, write: Callable[[Sequence[Write]], None], transaction: bool) -> None:
        self._write = write
        self._transaction = transaction
        self._writes: list[Write] = []

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value."""
        self._writes.append((key, value))

    def delete(self, key: bytes) -> None:
        """Delete a key, if there is one."""
        self._writes.append((key, None))

    def clear(self) -> None:
        """Drop what was collected."""
        self._writes.clear()

    def write(self) -> None:
        """Make the writes in their order, and collect anew."""
        self._write(self._writes)
        self.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._transaction:
            self.write()
