"""A transformed file as a file object of plain bytes, with random access, and Swift's readers over it.

Theory of operation.  A whole read uses the whole-stream decoder, which checks most, and compares the
checksum of all stored bytes; a range asks the chain for the position of its bytes and decodes only those.  Wrong
bytes raise ``EIO``, Swift's error for a bad disk, for which it quarantines the object, on ranges
too.  A missing key is no such error:
:class:`~sluice_middleware.object_server.diskfile.disk_filters.Unreadable` ends the request and does not touch the file.

Swift's reader works on a file object; a :class:`DecodedFile` replaces it and uses plain offsets only.  The object
server and middlewares get an :class:`OpaqueReader`, which has no ``_fp``: a middleware that would read that
file's descriptor directly (Storlets) iterates instead.
"""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final

from isal import isal_zlib

from sluice_core.errors import SluiceError
from sluice_filters.api import CorruptData, Hint, Stream
from sluice_filters.chain import Located, can_seek, chain_decoder, locate
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters, Unreadable
from sluice_middleware.object_server.diskfile.stored_metadata import StoredMetadata
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import BaseDiskFileReader, close_if_possible, drop_buffer_cache

#: Stored bytes given to a decoder at once; its output is at most 256 times that (compression's format).
_FEED: Final = 64 * 1024
#: Plain bytes that one hand-over to a thread should produce.
_BATCH: Final = 1 << 20
#: Stored bytes that are read before they are dropped from the page cache.
_DROP: Final = 1 << 20


class DecodedFile:
    """The plain bytes of a transformed file, as a file object; owns ``file``."""

    def __init__(
        self, file: BinaryIO, stored: StoredMetadata, size: int, tools: DiskFilters, hint: Hint, threads: bool = True
    ) -> None:
        """
        :param size: of the plain file
        :param threads: False where no other green thread could run meanwhile
        """
        self._file = file
        self._stored = stored
        self._size = size
        self._filters = tools.filters
        self._hint = hint
        self._run: Callable[..., Any] = green.run_in_thread if threads and tools.is_heavy(stored) else operator.call
        self._records: Sequence[Any] = stored.records  # fetched indexes are added
        self._position = 0
        self._stop = size
        self._pieces: Iterator[bytes] | None = None
        self._ready = memoryview(b"")
        self._read_from = self._read_to = 0

    def fileno(self) -> int:
        """The descriptor of the stored file."""
        return self._file.fileno()

    def decode_inline(self) -> None:
        """Decode in the caller from now on, since each reader has a thread."""
        self._run = operator.call

    def tell(self) -> int:
        """Plain offset of the next byte."""
        return self._position

    def check_thread(self) -> None:
        """Do nothing: no thread reads this file."""

    def seek(self, offset: int, stop: int | None = None) -> int:
        """Go to a plain offset; reading is expected to end at ``stop``, but may continue."""
        self._position = min(offset, self._size)
        self._stop = self._size if stop is None else max(min(stop, self._size), self._position)
        self._pieces, self._ready = None, memoryview(b"")
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, ``size`` at most; empty at the end, where all remaining checks are made.

        :raises OSError: EIO when the file is damaged
        :raises Unreadable: when a filter cannot work now
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(_BATCH), b""))
        if not self._ready:
            self._ready = memoryview(self._next())
        data = bytes(self._ready[:size])
        self._ready = self._ready[len(data) :]
        self._position += len(data)
        return data

    def close(self) -> None:
        """Close the stored file."""
        self._pieces, self._ready = None, memoryview(b"")
        self._file.close()

    def drop_cache(self, least: int = _DROP) -> None:
        """Drop the bytes that were read from the page cache, if they are ``least`` at least."""
        if self._read_to - self._read_from >= least:
            drop_buffer_cache(self._file.fileno(), self._read_from, self._read_to - self._read_from)
            self._read_from = self._read_to

    def _next(self) -> bytes:
        try:
            small = self._stop - self._position <= _FEED
            data: bytes = self._collect() if small else self._run(self._collect)
        except CorruptData as error:
            raise OSError(errno.EIO, f"stored bytes are damaged: {error}") from error
        except SluiceError as error:
            raise Unreadable(f"cannot be decoded now: {error}") from error
        return data

    def _collect(self) -> bytes:
        """Return some plain bytes, no further than the expected end; empty at the end of the file."""
        pieces: list[bytes] = []
        place = self._position
        while place - self._position < _BATCH:
            if self._pieces is None:
                if place >= self._size:
                    break
                self._pieces = self._decode(place, self._stop if place < self._stop else self._size)
            piece = next(self._pieces, None)
            if piece is None:  # all expected bytes are decoded and checked
                self._pieces = None
                if place >= self._size or (place >= self._stop and place > self._position):
                    break
                continue
            pieces.append(piece)
            place += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _decode(self, start: int, stop: int) -> Iterator[bytes]:
        """Return the plain bytes ``[start, stop)``; raise an error when there are fewer or more."""
        whole = stop - start == self._size
        if not whole and can_seek(self._records, self._filters):
            found = self._locate(start, stop)
            yield from self._feed(found.stream, found.start, found.stop)
            return
        place = 0
        stream = chain_decoder(self._records, self._filters, self._hint)
        for piece in self._feed(stream, 0, self._stored.size):
            kept = piece[max(start - place, 0) : max(stop - place, 0)]
            place += len(piece)
            if kept:
                yield kept
            if place >= stop and not whole:
                return
        if place != self._size:
            raise CorruptData(f"`{place}` plain bytes, expected {self._size}")

    def _feed(self, stream: Stream, begin: int, end: int) -> Iterator[bytes]:
        self._read_from = self._read_to = begin
        whole, crc = end - begin == self._stored.size, 0
        while begin < end:
            data = self._fetch(begin, min(begin + _FEED, end))
            if whole:
                crc = isal_zlib.crc32(data, crc)
            begin += len(data)
            self._read_to = begin
            yield stream.feed(data)
            while stream.behind:
                yield stream.more()
        yield stream.finish()
        if whole and crc != self._stored.crc:
            raise CorruptData(f"checksum of all stored bytes is `{crc}`, expected {self._stored.crc}")

    def _fetch(self, begin: int, end: int) -> bytes:
        data = os.pread(self._file.fileno(), end - begin, begin)
        if len(data) != end - begin:
            raise CorruptData(f"`{len(data)}` stored bytes at {begin}, expected {end - begin}")
        return data

    def _locate(self, start: int, stop: int) -> Located:
        search = locate(self._records, self._filters, start, stop)
        try:
            wanted = next(search)
            while True:
                wanted = search.send(self._fetch(*wanted))
        except StopIteration as done:
            found: Located = done.value
        self._records = found.records
        return found


class RangeReaderMixin(BaseDiskFileReader):  # type: ignore[misc]
    """For Swift's readers whose ``_fp`` accepts in ``seek`` where reading will stop."""

    def app_iter_range(self, start: int | None, stop: int | None) -> Iterator[bytes]:
        """As Swift's reader, which does not tell the file where the range stops: this one reads to ``stop`` and no
        further.

        As there, a range to the very end also reads the end of the file, where checks are made.
        """
        end = self._obj_size if stop is None else min(stop, self._obj_size)
        self._fp.seek(start or 0, end)
        left = end - (start or 0)
        try:
            for chunk in self:
                if len(chunk) < left or end == self._obj_size:
                    left -= len(chunk)
                    yield chunk
                    continue
                yield chunk[:left]
                break
        finally:
            if not self._suppress_file_closing:
                self.close()


class DecodedReaderMixin(RangeReaderMixin):
    """For Swift's readers whose ``_fp`` is a :class:`DecodedFile`."""

    def close(self) -> None:
        """As Swift's reader does."""
        if self._fp and not self._keep_cache:
            self._fp.drop_cache(least=1)
        super().close()

    def _drop_cache(self, descriptor: int, offset: int, length: int) -> None:
        """Let the file drop its bytes: Swift's offsets are plain, and only the file knows the stored ones."""
        self._fp.check_thread()
        if not self._keep_cache:
            self._fp.drop_cache()


class OpaqueReader:
    """A reader of plain bytes that hides its file; of ``()`` it reads nothing."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reader)

    def app_iter_range(self, start: int | None, stop: int | None) -> Iterator[bytes]:
        """The plain bytes ``[start, stop)``."""
        found: Iterator[bytes] = self._reader.app_iter_range(start, stop)
        return found

    def app_iter_ranges(self, ranges: Any, content_type: Any, boundary: Any, size: int) -> Iterator[bytes]:
        """Several ranges as ``multipart/byteranges``."""
        found: Iterator[bytes] = self._reader.app_iter_ranges(ranges, content_type, boundary, size)
        return found

    def can_zero_copy_send(self) -> bool:
        """Return False: the kernel cannot decode."""
        return False

    def close(self) -> None:
        """As Swift's reader: check the bytes of a whole read, and close the file."""
        close_if_possible(self._reader)
