"""Remembers where ranges of transformed objects are stored, so that a range needs one request only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_core.errors import SluiceError
from sluice_filters import chain
from sluice_filters.api import Filter
from sluice_middleware.swift.proxy_api import Range, drain_and_close
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse

Records = tuple[dict[str, Any], ...]


class RangeIndex:
    """Maps a range of a known object to the stored bytes that contain it.

    An entry is a guess: a response with another chain is dropped, and the client's own request is
    sent.  One per worker; the oldest of ``limit`` entries is removed first.
    """

    def __init__(self, filters: Mapping[str, type[Filter]], limit: int = 1000) -> None:
        self._filters = filters
        self._limit = limit
        self._known: dict[str, tuple[str, Records]] = {}

    def remember(self, env: Env, value: str, records: Records) -> None:
        """Remember the chain of an object of which a range was read."""
        path = env["PATH_INFO"]
        if self._known.pop(path, None) is None and len(self._known) >= self._limit:
            del self._known[next(iter(self._known))]
        self._known[path] = (value, records)

    def fetch(self, app: App, env: Env) -> UpstreamResponse | None:
        """Return the response to a single range of a known object, in stored bytes; None when the client's own request
        must be sent.
        """
        known = self._known.get(env["PATH_INFO"])
        if known is None or env["REQUEST_METHOD"] != "GET" or "," in env["HTTP_RANGE"]:
            return None
        value, records = known
        span = self._locate(records, env["HTTP_RANGE"])
        if span is None:
            return None
        answer = UpstreamResponse(app, {**env, "HTTP_RANGE": f"bytes={span[0]}-{span[1] - 1}"})
        if sysmeta.find_header(answer.headers, sysmeta.CHAIN) == value:
            return answer
        drain_and_close(answer.body)
        del self._known[env["PATH_INFO"]]
        return None

    def _locate(self, records: Records, text: str) -> tuple[int, int] | None:
        """The stored bytes that contain the range in ``text``, if it is a single range and no index must be fetched."""
        try:
            ranges = Range(text).ranges_for_length(chain.plain_size(records))
        except ValueError:
            return None
        if not ranges or len(ranges) != 1 or not chain.can_seek(records, self._filters):
            return None
        try:
            next(chain.locate(records, self._filters, *ranges[0]))
        except StopIteration as found:
            return found.value.start, found.value.stop
        except SluiceError:
            return None  # its key may be missing; the object stored now may have another
        return None
