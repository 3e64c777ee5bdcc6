"""The bytes of one expansion, for all who wait for them: made once, read by many, each at its own pace.

Pieces go to a temporary file, in memory while it is short.  A reader reads behind the maker; a slow reader holds back
nobody.  The maker says when the bytes are complete, or that they will never be; readers hear that at their next read.
A maker from whom nothing comes for long is given up by the first reader who notices.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Final

from sluice_motifs.api import ExpansionError

#: Bytes that are kept in memory, per expansion.
IN_MEMORY: Final = 8 << 20
#: Bytes that a reader takes at once.
PIECE: Final = 256 << 10
#: Seconds without a byte after which a maker is given up.
STALLED: Final = 60.0


class SharedStream:
    """One writer, any number of readers, from any threads.

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
        """Bytes that readers can have by now."""
        return self._length

    @property
    def complete(self) -> bool:
        """Whether all bytes are there."""
        return self._complete

    @property
    def failed(self) -> bool:
        """Whether there will never be all bytes."""
        return self._failure is not None

    def append(self, piece: bytes, same: bool = True) -> None:
        """More bytes, which readers may have at once.

        :param same: whether they are the bytes that the item had; so of all or of none
        :raises ExpansionError: when they cannot be kept, or the maker was given up
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
        """That was all.

        :raises ExpansionError: when the maker was given up
        """
        with self._changed:
            self._check()
            self._complete = True
            self._same = same
            self._changed.notify_all()

    def fail(self, reason: ExpansionError) -> None:
        """There will be no more, and what readers have is worth nothing; a complete stream stays so."""
        with self._changed:
            if not self._complete and self._failure is None:
                self._failure = reason
            self._changed.notify_all()

    def same(self) -> bool:
        """Whether the bytes are those that the item had; waits for the first one.

        :raises ExpansionError: when there will be none
        """
        with self._changed:
            self._wait(lambda: self._same is not None)
            return bool(self._same)

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
            self._wait(lambda: self._complete)

    def close(self) -> None:
        """Give up the file; nobody reads any more."""
        self._file.close()

    def _piece(self, position: int, size: int) -> bytes:
        with self._changed:
            self._wait(lambda: self._length > position or self._complete)
            self._file.seek(position)
            return self._file.read(min(size, max(0, self._length - position)))

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Until something is so, or the stream failed; as long as bytes come."""
        while not ready() and self._failure is None:
            length = self._length
            if not self._changed.wait(self._stalled) and self._length == length and not self._complete:
                self.fail(ExpansionError(f"no byte was made for {self._stalled:g} s"))
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise ExpansionError(f"{self._failure}")
