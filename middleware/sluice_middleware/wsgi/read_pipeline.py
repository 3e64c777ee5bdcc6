"""Runs read-time filters over one response, on proxies and on storage nodes.

The output of a filter has no length, no ETag and no ranges that are known beforehand.  So
the response is 200 without them, whatever Swift's status; and since a filter may detect only in the first
bytes that the request is invalid (a missing column), the response does not start
before the first output, or a limit of bytes that were read without output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sluice_filters.api import CorruptData, Filter, Hint
from sluice_filters.chain import chain_reader
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import DecodedBody, Env, Headers, UpstreamResponse, WrappedBody

#: Bytes of input that may be read before a response starts without output.
PATIENCE: Final = 1 << 20
#: Headers that do not apply to the output of a filter.
_UNTRUE: Final = frozenset(
    {
        "etag",
        "content-length",
        "content-range",
        "accept-ranges",
        "content-md5",
        "x-manifest-etag",
        "x-object-sysmeta-s3api-etag",
        "x-object-sysmeta-slo-etag",
        "x-object-sysmeta-slo-size",
    }
)


def requested_headers(filters: Iterable[Filter], env: Env) -> dict[str, str]:
    """The request headers that ``filters`` need, by their declared names."""
    headers = {}
    for one in filters:
        for name in one.asks:
            value = env.get("HTTP_" + name.upper().replace("-", "_"))
            if value is not None:
                headers[name] = value.encode("latin-1").decode("utf-8", "surrogateescape")
    return headers


def valid_headers(headers: Headers) -> Headers:
    """The headers that still apply to a response that a filter changed."""
    return [(name, value) for name, value in headers if name.lower() not in _UNTRUE]


def wanted_span(filters: Sequence[Filter], hint: Hint) -> tuple[int, int] | None:
    """The plain bytes ``[start, stop)`` that the first of ``filters`` (in order of GET) needs; None: all of them."""
    wanted = filters[0].span(hint) if filters and hint.size is not None else None
    if wanted is None or hint.size is None:
        return None
    start, stop = wanted
    stop = hint.size if stop is None else min(stop, hint.size)
    return None if start <= 0 and stop >= hint.size else (start, stop)


def apply_filters(answer: UpstreamResponse, filters: Sequence[Filter], hint: Hint) -> None:
    """Replace the body of ``answer`` by the output of ``filters`` (in running order on GET).

    :raises SluiceError: when they refuse; the response's body is closed then
    """
    body = answer.body
    length = sysmeta.find_header(answer.headers, "Content-Length")
    if length is not None:
        body = LengthCheckedBody(body, int(length))
    try:
        stream = chain_reader(list(reversed(filters)), hint)
    except BaseException:
        close_if_possible(body)
        raise
    answer.body = DecodedBody(body, stream, any(one.heavy for one in filters)).started(PATIENCE)
    answer.status, answer.headers = "200 OK", valid_headers(answer.headers)


class LengthCheckedBody(WrappedBody):
    """A body that must not end before ``length`` bytes: behind a filter a client could not detect that."""

    def __init__(self, body: Iterable[bytes], length: int) -> None:
        super().__init__(body)
        self._left = length

    def __next__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is not None:
            self._left -= len(piece)
            return piece
        if self._left > 0:
            raise CorruptData(f"object ends `{self._left}` bytes early")
        raise StopIteration
