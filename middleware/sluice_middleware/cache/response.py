"""A response from the cache, as Swift's object server would give it.

Swift's own code answers conditions, ranges and HEAD; a plain GET, by far the most frequent request, returns
the headers and the bytes without any further check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isal import isal_zlib

from sluice_filters.visits import Headers, Reply
from sluice_middleware.cache.files import PIECE, CachedFile
from sluice_middleware.swift.proxy_api import (
    Request,
    Response,
    multi_range_iterator,
    resolve_etag_is_at_header,
    resolve_ignore_range_header,
)
from sluice_middleware.wsgi.response import CONDITIONS, Env, UpstreamResponse

_PARTICULAR: Final = ("HTTP_RANGE", *CONDITIONS)
#: Headers that Swift's proxy computes itself rather than copying them from one object server's response: for any
#: object, and for an erasure-coded one.
_MADE_UP: Final = frozenset({412})
_MADE_UP_OF_FRAGMENTS: Final = frozenset({304, 412, 416})
_FRAGMENTS: Final = "X-Backend-Fragments"


class Damaged(OSError):
    """The bytes of a cached body differ from its checksum."""


def build_reply(env: Env, content: CachedFile) -> Reply | None:
    """Build the response; return None when Swift has to give it.  ``content`` is closed now or with the body.

    :raises OSError: when the file cannot be read or is damaged; the file is closed then
    """
    if env["REQUEST_METHOD"] == "HEAD" or any(name in env for name in _PARTICULAR):
        return _particular(env, content)
    headers = Headers()
    dict.update(headers, content.headers)  # their names are in Title-Case since they came out of Headers
    if content.length > PIECE:
        return Reply("200 OK", headers, _Body(content))
    return Reply("200 OK", headers, _small(content))


def _small(content: CachedFile) -> list[bytes]:
    try:
        pieces = list(content.read(0, content.length))
    finally:
        content.close()
    if isal_zlib.crc32(pieces[0] if pieces else b"") != content.checksum:
        raise Damaged("a cached object is damaged")
    return pieces


def _particular(env: Env, content: CachedFile) -> Reply | None:
    env = dict(env)  # Range is removed when Swift would ignore it
    request = Request(env)
    resolve_ignore_range_header(request, content.headers)
    body = _Body(content)
    if request.method == "HEAD":
        body.close()
    response = Response(
        request=request,
        headers=content.headers,
        app_iter=None if request.method == "HEAD" else body,
        conditional_response=True,
        conditional_etag=resolve_etag_is_at_header(request, content.headers),
    )
    answer = UpstreamResponse(response, env)
    if answer.code in (_MADE_UP_OF_FRAGMENTS if _FRAGMENTS in content.headers else _MADE_UP):
        body.close()
        return None
    return Reply(answer.status, Headers(answer.headers), _Closing(answer.body, body))


class _Body:
    """A cached body that is read while it is sent; whole or in ranges, as ``swob.Response`` needs it."""

    def __init__(self, content: CachedFile) -> None:
        self._content: CachedFile | None = content

    def __iter__(self) -> Iterator[bytes]:
        content = self._content
        if content is None:
            return
        checksum = 0
        for piece in content.read(0, content.length):
            checksum = isal_zlib.crc32(piece, checksum)
            if len(piece) < PIECE and checksum != content.checksum:
                raise Damaged("a cached object is damaged")  # its last piece is not sent: the transfer is cut
            yield piece

    def app_iter_range(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes ``[start, stop)``."""
        if self._content is not None:
            yield from self._content.read(start, stop)

    def app_iter_ranges(self, ranges: Any, content_type: bytes, boundary: bytes, size: int) -> Iterator[bytes]:
        """Several ranges as ``multipart/byteranges``."""
        yield from multi_range_iterator(ranges, content_type, boundary, size, self.app_iter_range)

    def close(self) -> None:
        """Close the file."""
        content, self._content = self._content, None
        if content is not None:
            content.close()


class _Closing:
    """The iterable of swob; closing it closes the file."""

    def __init__(self, pieces: Any, body: _Body) -> None:
        self._pieces = pieces
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        """Close the file."""
        self._body.close()
