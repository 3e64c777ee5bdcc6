"""The body of a contracted object as clients read it: bytes that the node's motif daemon makes, or ranges of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_client import GrantedCall
from sluice_middleware.swift.proxy_api import Request, Response
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


class _Range:
    """The app_iter that ``swob.Response`` asks for the range that it computed; several are never asked for."""

    def __init__(self, open_call: Opener) -> None:
        self.app_iter_range = lambda start, stop: MadeBody(open_call(start, stop))


def respond_range(
    env: Env, headers: Headers, size: int, etag: str, open_call: Opener
) -> tuple[str, Headers, Iterable[bytes]]:
    """Status, headers and body of a request with one range of an object of ``size`` bytes, as Swift answers it.

    :raises SluiceError: what ``open_call`` raises
    """
    response = Response(
        request=Request(env),
        status=200,
        headers=dict(headers),
        app_iter=_Range(open_call),
        conditional_response=True,
        conditional_etag=etag,
    )
    response.content_length = size
    started: list[Any] = []
    body = response(env, lambda status, sent, exc_info=None: started.extend((status, sent)))
    return started[0], started[1], body
