"""Runs read-time filters over one response, on proxies and on storage nodes.

What a filter makes of an object has no length, no ETag and no ranges that anybody knows before.  So
the answer is 200 without them, whatever Swift said; and since a filter may learn only from the first
bytes that what was asked of it makes no sense (a column that is not there), the answer does not start
before the first output is there, or so much was read that waiting longer serves nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sluice_filters.api import CorruptData, Filter, Hint
from sluice_filters.chain import chain_reader
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import DecodedBody, Env, Headers, UpstreamResponse, WrappedBody

#: Bytes of input that may pass before an answer starts without output.
PATIENCE: Final = 1 << 20
#: What is not true of what a filter makes of an object.
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
    """Those request headers that ``filters`` want to know, by their declared names."""
    headers = {}
    for one in filters:
        for name in one.asks:
            value = env.get("HTTP_" + name.upper().replace("-", "_"))
            if value is not None:
                headers[name] = value.encode("latin-1").decode("utf-8", "surrogateescape")
    return headers


def valid_headers(headers: Headers) -> Headers:
    """What still holds of an answer that a filter changed."""
    return [(name, value) for name, value in headers if name.lower() not in _UNTRUE]


def wanted_span(filters: Sequence[Filter], hint: Hint) -> tuple[int, int] | None:
    """The plain bytes ``[start, stop)`` that the first of ``filters`` (in order of GET) wants; None: all of them."""
    wanted = filters[0].span(hint) if filters and hint.size is not None else None
    if wanted is None or hint.size is None:
        return None
    start, stop = wanted
    stop = hint.size if stop is None else min(stop, hint.size)
    return None if start <= 0 and stop >= hint.size else (start, stop)


def apply_filters(answer: UpstreamResponse, filters: Sequence[Filter], hint: Hint) -> None:
    """Make ``answer`` what ``filters`` (in running order on GET) make of it.

    :raises SluiceError: when they refuse; the answer's body is closed then
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
    """A body that must not end before ``length`` bytes: behind a filter nobody else would notice."""

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
