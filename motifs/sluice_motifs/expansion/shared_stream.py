"""The running expansions of this process: one for each item, which all its openers read at their own pace.

Pieces are written to a temporary file, in memory while it is short.  A reader reads behind the maker; a slow reader
delays no other.  The maker marks the bytes as complete, or as failed; readers detect that at their next read.
A maker that is silent for too long is aborted by the first reader that detects it.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sluice_motifs.api import ExpansionError
from sluice_motifs.dependencies.freshness import SourceState
from sluice_motifs.storage.records import ItemView

#: Bytes of one expansion that are kept in memory.
IN_MEMORY: Final = 8 << 20
#: Bytes that a reader reads at once.
PIECE: Final = 256 << 10
#: Seconds without a byte after which a maker is aborted.
STALLED: Final = 60.0


class SharedStream:
    """The bytes of one expansion: one writer, any number of readers, in any threads.

    :param stalled: seconds that readers wait for the next byte
    """

    def __init__(self, stalled: float = STALLED, in_memory: int = IN_MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115 - closed by close()
        self._stalled = stalled
        self._changed = threading.Condition()
        self._length = 0
        self._complete = False
        self._same: bool | None = None
        self._failure: ExpansionError | None = None

    @property
    def length(self) -> int:
        """Bytes that readers can read now."""
        return self._length

    @property
    def complete(self) -> bool:
        """Whether all bytes are written."""
        return self._complete

    @property
    def failed(self) -> bool:
        """Whether the bytes will never be complete."""
        return self._failure is not None

    def append(self, piece: bytes, same: bool = True) -> None:
        """Append bytes, which readers may read at once.

        :param same: whether they are the bytes that the item had; the same for all pieces
        :raises ExpansionError: when they cannot be stored, or the maker was aborted
        """
        with self._changed:
            self._check()
            try:
                self._file.seek(self._length)
                self._file.write(piece)
            except OSError as error:
                raise ExpansionError(f"its bytes cannot be kept for their readers: {error.strerror}") from error
            self._length += len(piece)
            self._same = same
            self._changed.notify_all()

    def finish(self, same: bool = True) -> None:
        """Mark the bytes as complete.

        :raises ExpansionError: when the maker was aborted
        """
        with self._changed:
            self._check()
            self._complete = True
            self._same = same
            self._changed.notify_all()

    def fail(self, reason: ExpansionError) -> None:
        """Mark the stream as failed, so that readers discard what they have; a complete stream stays complete."""
        with self._changed:
            if not self._complete and self._failure is None:
                self._failure = reason
            self._changed.notify_all()

    def same(self) -> bool:
        """Whether the bytes are those that the item had; wait for the first one.

        :raises ExpansionError: when there will be no bytes
        """
        with self._changed:
            self._wait(lambda: self._same is not None)
            return bool(self._same)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from ``start`` to before ``stop`` as soon as they are written.

        :raises ExpansionError: when they will not be written
        """
        position = start
        while stop is None or position < stop:
            piece = self._piece(position, PIECE if stop is None else min(PIECE, stop - position))
            if not piece:
                return
            position += len(piece)
            yield piece

    def wait(self) -> None:
        """Wait until the stream is complete.

        :raises ExpansionError: when it failed
        """
        with self._changed:
            self._wait(lambda: self._complete)

    def close(self) -> None:
        """Close the file once it has no readers."""
        self._file.close()

    def _piece(self, position: int, size: int) -> bytes:
        with self._changed:
            self._wait(lambda: self._length > position or self._complete)
            self._file.seek(position)
            return self._file.read(min(size, max(0, self._length - position)))

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready``, or until the stream has failed; as long as bytes arrive."""
        while not ready() and self._failure is None:
            length = self._length
            if not self._changed.wait(self._stalled) and self._length == length and not self._complete:
                self.fail(ExpansionError(f"no byte was made for {self._stalled:g} s"))
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise ExpansionError(f"{self._failure}")


@dataclass(slots=True, eq=False)
class ActiveExpansion:
    """One expansion; ``view`` is its item, ``users`` are its maker and all its readers.

    :param state: the item's sources before any of them was read
    """

    view: ItemView
    state: SourceState
    stream: SharedStream
    users: int = 2

    def serves(self, view: ItemView, state: SourceState) -> bool:
        """Whether a reader with this view may join the expansion: no version has changed since it began."""
        same = self.view.plain.version == view.plain.version and self.view.record.motifs == view.record.motifs
        return same and self.state.closure == state.closure and not self.stream.failed


class ActiveExpansions:
    """All running expansions, by item."""

    def __init__(self) -> None:
        self._mutex = threading.Condition()
        self._active: dict[str, ActiveExpansion] = {}

    def has(self, name: str) -> bool:
        """Whether an expansion of an item runs."""
        with self._mutex:
            return name in self._active

    def join(self, name: str) -> ActiveExpansion | None:
        """Join the running expansion of an item; call :meth:`leave` after reading."""
        with self._mutex:
            active = self._active.get(name)
            if active is not None:
                active.users += 1
            return active

    def begin(self, active: ActiveExpansion) -> None:
        """Register a new expansion, for its maker and one reader."""
        with self._mutex:
            self._active[active.view.name] = active

    def end(self, active: ActiveExpansion) -> None:
        """Remove a finished expansion: later opens view the item again."""
        self.forget(active)
        self.leave(active)

    def forget(self, active: ActiveExpansion) -> None:
        """Let no opener join an expansion any more."""
        with self._mutex:
            if self._active.get(active.view.name) is active:
                del self._active[active.view.name]
                self._mutex.notify_all()

    def wait(self, active: ActiveExpansion) -> None:
        """Wait until an expansion cannot be joined any more: its bytes are stored, or never will be."""
        with self._mutex:
            self._mutex.wait_for(lambda: self._active.get(active.view.name) is not active)

    def leave(self, active: ActiveExpansion) -> None:
        """Remove one user of an expansion; the last one closes its stream."""
        with self._mutex:
            active.users -= 1
            last = active.users == 0
        if last:
            active.stream.close()
