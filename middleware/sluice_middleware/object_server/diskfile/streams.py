"""The changes to a reader whose stream has a thread of its own (:mod:`stream_scheduler`).

Theory of operation.  Swift's reader itself does not change.  It reads a file object, and here that is
a :class:`StreamFile`: bytes in the page cache are read from there at once; from the first step of 1 MiB that is not
cached, a thread reads the file, one step ahead of the client, and pieces of the size that Swift requests are
cut from that.  Writers: :mod:`stream_writer`.

Rules:

* During a step only the thread uses file and descriptor; closing is queued behind it.
* A stream may get its thread in the middle, when an objective comes into force or the bytes are no longer cached; it
  then keeps the thread to its end.  The stream checks once for each step whether it needs one; until the next check
  Swift reads the file itself.
* If bytes leave the page cache between the check and the read, the hub waits for the disk, as in plain Swift.
* An error in a step is raised where the stream waits for its result, as if it had happened there.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Final

from sluice_core.messages.bandwidth import Flow
from sluice_middleware.object_server import page_cache
from sluice_middleware.object_server.diskfile import request_context
from sluice_middleware.object_server.diskfile.decoded_file import DecodedFile, RangeReaderMixin
from sluice_middleware.object_server.io_threads import ThreadStep
from sluice_middleware.object_server.stream_scheduler import STEP, StreamScheduler, StreamThread
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import drop_buffer_cache

#: Bytes read at once beyond the expected end.
_BEYOND: Final = 64 * 1024
#: The page cache keeps bytes that were read at once in folios of up to this size, and drops only whole folios: the
#: range to drop begins this much before the bytes that were read last.
_BIGGEST_FOLIO: Final = 2 << 20
#: Bytes from the page cache after which other streams run; waking another client costs more than continuing.
_TURN: Final = 8 << 20


def diskfile_flow(diskfile: Any, method: str) -> Flow | None:
    """The flow of a disk file's bytes; None when it was opened by its hash alone."""
    replication_flow = request_context.current_request().replication_flow
    if replication_flow is not None:
        return replication_flow
    if diskfile.account is None:
        return None
    return Flow(diskfile.account, method, int(diskfile.policy), diskfile.container or "")


class StreamFile:
    """A file object that a thread reads ahead, if the stream has one; owns ``file``."""

    def __init__(self, file: Any, size: int, streams: StreamScheduler, flow: Flow) -> None:
        self._file = file
        self._size = size
        self._streams = streams
        self._flow = flow
        self._thread: StreamThread | None = None
        self._position = self._place = 0  # offsets of the next byte, and of the next step
        self._stop = size
        self._block = b""
        self._at = 0
        self._ahead: ThreadStep | None = None
        self._move: tuple[int, int | None] | None = None
        self._sure = 0  # up to this offset all bytes are in the page cache
        self._turn = 0

    def fileno(self) -> int:
        """The descriptor of the file."""
        number: int = self._file.fileno()
        return number

    def tell(self) -> int:
        """Offset of the next byte."""
        return int(self._file.tell()) if "read" in self.__dict__ else self._position

    def seek(self, offset: int, stop: int | None = None) -> int:
        """Go to an offset; bytes from ``stop`` on are not read ahead."""
        self.__dict__.pop("read", None)
        self._block, self._at, self._ahead = b"", 0, None
        self._position = self._place = offset
        self._sure = 0
        self._turn = offset
        self._stop = self._size if stop is None else min(stop, self._size)
        self._move = None if self._thread is None else (offset, stop)
        if self._thread is None:
            self._go(offset, stop)
        return offset

    def read(self, size: int) -> bytes:
        """Return the next bytes, ``size`` at most, fewer in the middle too; empty at the end.

        :raises OSError: of the file
        """
        if self._at >= len(self._block):
            data = self._at_once(size) if self._ahead is None else None
            if data is not None:
                self._position += len(data)
                return data
            self._block, self._at = self._next(), 0
        if not self._at and len(self._block) <= size:
            data, self._block = self._block, b""
        else:
            data = self._block[self._at : self._at + size]
            self._at += size
        self._position += len(data)
        return data

    def check_thread(self) -> None:
        """Called after each step: the stream may need a thread now."""
        if "read" in self.__dict__ and self._streams.wants_threads():
            del self.__dict__["read"]
            self._position = self._place = self._file.tell()

    def drop(self, offset: int, length: int) -> None:
        """Drop bytes that were read from the page cache, in the thread, since that may wait for other processors."""
        begin = max(offset - _BIGGEST_FOLIO, 0) if self._thread is not None or self._sure else offset
        forget = functools.partial(drop_buffer_cache, self.fileno(), begin, offset + length - begin)
        if self._thread is None:
            forget()
        else:
            self._thread.send(forget)

    def close(self) -> None:
        """Close the file, now or after the current step."""
        thread, self._thread = self._thread, None
        self._block, self._at, self._ahead = b"", 0, None
        if thread is None:
            self._file.close()
        else:
            thread.release(self._file.close)

    def _join(self) -> bool:
        self._thread = self._streams.lend(self._flow) if self._place < self._size else None
        return self._thread is not None

    def _at_once(self, size: int) -> bytes | None:
        """Return the next bytes if they need no thread: from the page cache, or at the end; else None."""
        wanted = self._thread is not None or self._place < self._sure or self._streams.wants_threads()
        if wanted and self._place < self._stop and (data := self._cached(size)):
            return data
        if self._thread is None and not (wanted and self._join()):
            if not wanted:
                self.__dict__["read"] = self._file.read  # from now on directly
            data = self._step(self._taken(), size)
            self._place += len(data)
            return data
        return None

    def _next(self) -> bytes:
        thread = self._thread
        if thread is None or (self._place >= self._size and not thread.busy):
            return self._step(self._taken(), _BEYOND)  # the end of the file needs no disk
        call, self._ahead = self._ahead or self._begin(thread), None
        block: bytes = call.wait()
        self._place += len(block)
        if block and self._place < self._stop:
            self._ahead = self._begin(thread)
        return block

    def _cached(self, size: int) -> bytes:
        """Return the next bytes from the page cache, without a hand-over; empty when a disk is needed."""
        if self._place >= self._sure and not self._is_cached():
            return b""
        data = os.pread(self.fileno(), min(self._sure - self._place, size), self._place)
        self._place += len(data)
        self._move = (self._place, self._stop)
        return data

    def _is_cached(self) -> bool:
        """Whether the page cache has the next step."""
        if self._sure and self._place - self._turn >= _TURN:
            green.yield_control()  # other streams may not have run, unless the client was slow
            self._turn = self._place
        size = min(self._stop - self._place, STEP)
        known = page_cache.is_cached(self.fileno(), self._place, size)
        self._sure = self._place + size if known else 0
        return known

    def _begin(self, thread: StreamThread) -> ThreadStep:
        left = self._stop - self._place
        return thread.start(functools.partial(self._step, self._taken(), min(left, STEP) if left > 0 else _BEYOND))

    def _taken(self) -> tuple[int, int | None] | None:
        move, self._move = self._move, None
        return move

    def _step(self, move: tuple[int, int | None] | None, size: int) -> bytes:
        if move is not None:
            self._go(*move)
        block: bytes = self._file.read(size)
        return block

    def _go(self, offset: int, stop: int | None) -> None:
        self._file.seek(offset)


class DecodedStreamFile(StreamFile):
    """The same for a :class:`~sluice_middleware.object_server.diskfile.decoded_file.DecodedFile`, which decodes in the
    thread.
    """

    _file: DecodedFile

    def drop_cache(self, *args: Any, **kwargs: Any) -> None:
        """As the decoded file does."""
        self._file.drop_cache(*args, **kwargs)

    def _cached(self, size: int) -> bytes:
        """Return nothing: the thread decodes, even if the stored bytes are in the page cache."""
        return b""

    def _join(self) -> bool:
        joined = super()._join()
        if joined:
            self._file.decode_inline()
        return joined

    def _go(self, offset: int, stop: int | None) -> None:
        self._file.seek(offset, stop)


class StreamReaderMixin(RangeReaderMixin):
    """For Swift's readers whose ``_fp`` is a :class:`StreamFile`."""

    def can_zero_copy_send(self) -> bool:
        """Return False: sendfile would bypass the thread."""
        return False

    def _drop_cache(self, descriptor: int, offset: int, length: int) -> None:
        """As Swift's reader, which calls it after each MiB."""
        self._fp.check_thread()
        if not self._keep_cache:
            self._fp.drop(offset, length)
