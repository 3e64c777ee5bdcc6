"""The bytes of one expansion, for all who wait for them: made once, read by many, each at its own pace.

Pieces go to a temporary file, in memory while it is short.  A reader reads behind the maker; a slow reader holds back
nobody.  The maker says when the bytes are complete, or that they will never be; readers hear that at their next read.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from typing import Final

from sluice_motifs.api import ExpansionError

#: Bytes that are kept in memory, per expansion.
IN_MEMORY: Final = 8 << 20
#: Bytes that a reader takes at once.
PIECE: Final = 256 << 10


class SharedStream:
    """One writer, any number of readers, from any threads."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115 - closed by close()
        self._changed = threading.Condition()
        self._length = 0
        self._complete = False
        self._failure: ExpansionError | None = None

    @property
    def length(self) -> int:
        """Bytes that readers can have by now."""
        return self._length

    @property
    def complete(self) -> bool:
        """Whether all bytes are there."""
        return self._complete

    def append(self, piece: bytes) -> None:
        """More bytes, which readers may have at once."""
        with self._changed:
            self._file.seek(self._length)
            self._file.write(piece)
            self._length += len(piece)
            self._changed.notify_all()

    def finish(self) -> None:
        """That was all."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def fail(self, reason: ExpansionError) -> None:
        """There will be no more, and what readers have is worth nothing."""
        with self._changed:
            self._failure = reason
            self._changed.notify_all()

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from ``start`` to before ``stop`` as soon as they are there.

        :raises ExpansionError: when they will never be
        """
        position = start
        while stop is None or position < stop:
            piece = self._piece(position, PIECE if stop is None else min(PIECE, stop - position))
            if not piece:
                return
            position += len(piece)
            yield piece

    def wait(self) -> None:
        """Until it is complete.

        :raises ExpansionError: when it failed
        """
        with self._changed:
            self._changed.wait_for(lambda: self._complete or self._failure is not None)
            if self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Give up the file; nobody reads any more."""
        self._file.close()

    def _piece(self, position: int, size: int) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._length > position or self._complete or self._failure is not None)
            if self._failure is not None:
                raise self._failure
            self._file.seek(position)
            return self._file.read(min(size, max(0, self._length - position)))
