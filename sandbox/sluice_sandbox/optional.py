"""A read-time filter that may be missing: when it fails in time, the bytes pass untouched.

In time means before it gave its first byte, and while what it took is still at hand.  After that the
answer is cut like that of any filter that fails: half of one and half of the other is never given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from sluice_filters.api import FilterError, Stream

#: The parameter by which an upload, or a sentence about it, says so.
OPTIONAL: Final = "optional"
_AT_HAND: Final = 1024 * 1024
_log = logging.getLogger(__name__)


class OptionalReader(Stream):
    """``make()`` as long as it works; what it took is kept to fall back on, up to a megabyte."""

    def __init__(self, make: Callable[[], Stream]) -> None:
        self._make = make
        self._stream: Stream | None = None
        self._taken: list[bytes] | None = []
        self._size = 0
        self._untouched = False

    def feed(self, data: bytes) -> bytes:
        if self._untouched:
            return data
        self._remember(data)
        return self._or_untouched(lambda stream: stream.feed(data))

    def finish(self) -> bytes:
        return b"" if self._untouched else self._or_untouched(lambda stream: stream.finish())

    def _remember(self, data: bytes) -> None:
        if self._taken is not None:
            self._taken.append(data)
            self._size += len(data)
            if self._size > _AT_HAND:
                self._taken = None

    def _or_untouched(self, step: Callable[[Stream], bytes]) -> bytes:
        try:
            if self._stream is None:
                self._stream = self._make()
            out = step(self._stream)
        except FilterError as error:
            if self._taken is None:
                raise
            _log.warning("an optional filter is left out: %s", error)
            self._untouched, self._stream = True, None
            return b"".join(self._taken)
        if out:
            self._taken = None
        return out
