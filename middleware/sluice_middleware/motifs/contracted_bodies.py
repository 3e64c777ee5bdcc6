"""The body of a contracted object as clients read it: bytes that the node's motif daemon makes, or ranges of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_client import GrantedCall
from sluice_middleware.swift.proxy_api import Request, Response, close_if_possible, multi_range_iterator
from sluice_middleware.wsgi.response import Env, Headers

#: Opens the bytes from a start to before a stop (None: to the end).
Opener = Callable[[int, int | None], GrantedCall]


class MadeBody:
    """The bytes of a call that was granted; closing it ends the call."""

    def __init__(self, granted: GrantedCall) -> None:
        self._granted = granted

    def __iter__(self) -> Iterator[bytes]:
        return self._granted.pieces()

    def close(self) -> None:
        """Read no more."""
        self._granted.close()


class LazyBody:
    """Bytes that are made only when somebody reads them: a copy may do without."""

    def __init__(self, open_call: Callable[[], GrantedCall]) -> None:
        self._open = open_call
        self._granted: GrantedCall | None = None

    def __iter__(self) -> Iterator[bytes]:
        self._granted = self._open()
        if self._granted.reply.status != 200 or not self._granted.reply.same:
            self.close()
            raise PeerError("the object changed while it was copied")
        yield from self._granted.pieces()

    def close(self) -> None:
        """Read no more."""
        if self._granted is not None:
            self._granted.close()


class _Ranges:
    """The app_iter that ``swob.Response`` asks for the ranges that it computed."""

    def __init__(self, open_call: Opener) -> None:
        self._open = open_call
        self._whole: MadeBody | None = None

    def __iter__(self) -> Iterator[bytes]:
        """No range after all (a malformed one): the whole object."""
        self._whole = MadeBody(self._open(0, None))
        return iter(self._whole)

    def app_iter_range(self, start: int, stop: int) -> MadeBody:
        return MadeBody(self._open(start, stop))

    def app_iter_ranges(
        self, ranges: list[tuple[int, int]], content_type: bytes, boundary: bytes, size: int
    ) -> Iterator[bytes]:
        yield from multi_range_iterator(ranges, content_type, boundary, size, self._part)

    def _part(self, start: int, stop: int) -> Iterator[bytes]:
        body = self.app_iter_range(start, stop)
        try:
            yield from body
        finally:
            body.close()

    def close(self) -> None:
        close_if_possible(self._whole)


def respond_ranges(
    env: Env, headers: Headers, size: int, etag: str, open_call: Opener
) -> tuple[str, Headers, Iterable[bytes]]:
    """Status, headers and body of a request with ``Range`` for an object of ``size`` bytes, as Swift answers it.

    :raises SluiceError: what ``open_call`` raises
    """
    response = Response(
        request=Request(env),
        status=200,
        headers=dict(headers),
        app_iter=_Ranges(open_call),
        conditional_response=True,
        conditional_etag=etag,
    )
    response.content_length = size
    started: list[Any] = []
    body = response(env, lambda status, sent, exc_info=None: started.extend((status, sent)))
    return started[0], started[1], body
