"""Readers of Swift over a decoded file, and the reader that the object server sees.

Swift's reader works on a file object; a :class:`~sluice_middleware.object_server.diskfile.decoded_file.DecodedFile`
stands in for it and speaks of plain offsets only.  What the object server and middlewares are given is
:class:`OpaqueReader`, which has no ``_fp``: whoever would read that file's descriptor past us (Storlets) iterates
instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice_middleware.swift.diskfile_api import BaseDiskFileReader, close_if_possible


class RangeReaderMixin(BaseDiskFileReader):  # type: ignore[misc]
    """For readers of Swift whose ``_fp`` can be told in ``seek`` where reading will stop."""

    def app_iter_range(self, start: int | None, stop: int | None) -> Iterator[bytes]:
        """As of Swift's reader, which knows not where it will stop: ours reads to ``stop`` and no further.

        Like there, a range to the very end reads the end of the file too, where checks are made.
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
    """For readers of Swift whose ``_fp`` is a
    :class:`~sluice_middleware.object_server.diskfile.decoded_file.DecodedFile`.
    """

    def close(self) -> None:
        """As of Swift's reader."""
        if self._fp and not self._keep_cache:
            self._fp.drop_cache(least=1)
        super().close()

    def _drop_cache(self, descriptor: int, offset: int, length: int) -> None:
        """Swift speaks of plain offsets; only the file knows which stored bytes those were."""
        self._fp.check_thread()
        if not self._keep_cache:
            self._fp.drop_cache()


class OpaqueReader:
    """A reader of plain bytes, without a file to look into; of ``()`` it reads nothing."""

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
        """The kernel cannot decode."""
        return False

    def close(self) -> None:
        """As of Swift's reader: checks what was read as a whole, and closes the file."""
        close_if_possible(self._reader)
