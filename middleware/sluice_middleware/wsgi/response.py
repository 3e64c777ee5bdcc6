"""Responses of the application to the right, and bodies that pass through filters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Self

from sluice_core.errors import CallerError, PeerError
from sluice_filters.api import CorruptData, Stream
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import close_if_possible, drain_and_close, reiterate
from sluice_middleware.wsgi import sysmeta

Env = dict[str, Any]
App = Callable[..., Iterable[bytes]]
StartResponse = Callable[..., Any]
Headers = sysmeta.Headers

#: The conditions of a request in its environment.
CONDITIONS: Final = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE")
#: Encoded pieces from this size on are decoded in a thread.
_THREADED: Final = 32 * 1024
#: Up to this many bytes of a response are dropped rather than sending another request.
SKIP: Final = 256 * 1024


class RefusedRequest(CallerError):
    """The client's request is invalid or impossible.

    :param status: of the response
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class OwnersError(PeerError):
    """An error that names identities or sources: clients that do not own the account get :attr:`PUBLIC` instead."""

    PUBLIC: Final = "not possible now, the account's owner and the proxy's log get the reason"


class RetryRequest(PeerError):
    """The request must be repeated; the message is the error if that does not help."""


class ObjectChanged(RetryRequest):
    """The object was written again between two requests for parts of it."""


class UpstreamResponse:
    """The response of the application to the right."""

    __slots__ = ("body", "exc_info", "filters", "headers", "status")

    def __init__(self, app: App, env: Env) -> None:
        self.status = ""
        self.headers: Headers = []
        self.exc_info: Any = None
        #: Keywords of the filters that hold for the stored object, as far as the response tells.
        self.filters: tuple[str, ...] = ()
        body = app(env, self._start_response)
        self.body: Iterable[bytes] = body if self.status else reiterate(body)

    @classmethod
    def build(cls, status: str, headers: Headers, body: Iterable[bytes]) -> Self:
        """A response that no application returned."""
        made = cls.__new__(cls)
        made.status, made.headers, made.body = status, headers, body
        made.exc_info, made.filters = None, ()
        return made

    def _start_response(self, status: str, headers: Headers, exc_info: Any = None) -> None:
        self.status, self.headers, self.exc_info = status, headers, exc_info

    @property
    def code(self) -> int:
        """The status as a number."""
        return int(self.status[:3])


class WrappedBody:
    """Iterator over the pieces of another body, which it closes; the base of wrappers that change pieces."""

    __slots__ = ("_body", "_pieces")

    def __init__(self, body: Iterable[bytes]) -> None:
        self._body = body
        self._pieces = iter(body)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """Close the connection."""
        close_if_possible(self._body)


class DecodedBody(WrappedBody):
    """Iterator over the decoded bytes of ``body``; raises an error rather than returning doubtful bytes."""

    def __init__(self, body: Iterable[bytes], stream: Stream, threaded: bool) -> None:
        """
        :param threaded: whether a piece is decoded in another thread (``Filter.heavy``)
        """
        super().__init__(body)
        self._stream = stream
        self._threaded = threaded
        self._first = b""
        #: True when there will be no more output.
        self.finished = False
        #: Bytes of the input read so far.
        self.consumed = 0

    def __next__(self) -> bytes:
        if self._first:
            plain, self._first = self._first, b""
            return plain
        while not self.finished:
            plain = self.step()
            if plain:
                return plain
        raise StopIteration

    def started(self, patience: float = math.inf) -> Self:
        """Start with the first output ready: an early error is raised before a response starts.

        :param patience: bytes of input after which to start without output
        :raises SluiceError: an error of a filter; the body is closed then
        """
        try:
            while not self._first and not self.finished and self.consumed < patience:
                self._first = self.step()
        except BaseException:
            self.close()
            raise
        return self

    def step(self) -> bytes:
        """Read one more piece of the input, or its end; return its output, maybe none."""
        if self._stream.behind:
            return green.run_in_thread(self._stream.more) if self._threaded else self._stream.more()
        piece = None if self._stream.done else self._next()
        if piece is None:
            self.finished = True
            heavy = self._threaded and self._stream.gather
            return green.run_in_thread(self._stream.finish) if heavy else self._stream.finish()
        self.consumed += len(piece)
        if self._threaded and len(piece) >= _THREADED:
            return green.run_in_thread(self._stream.feed, piece)
        return self._stream.feed(piece) if piece else b""

    def _next(self) -> bytes | None:
        """The next piece of the input, large enough for a stream that works in blocks; None at the end."""
        piece = next(self._pieces, None)
        wanted = self._stream.gather
        if piece is None or len(piece) >= wanted:
            return piece
        gathered = [piece]
        size = len(piece)
        while size < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                break
            gathered.append(piece)
            size += len(piece)
        return b"".join(gathered)


def stored_span(answer: UpstreamResponse) -> tuple[int, int] | None:
    """The stored bytes ``[first, last)`` that a response carries."""
    if answer.code == 200:
        length = sysmeta.find_header(answer.headers, "Content-Length")
        return (0, int(length)) if length else None
    if answer.code != 206:
        return None
    unit, _, span = (sysmeta.find_header(answer.headers, "Content-Range") or "").partition(" ")
    first, dash, last = span.partition("/")[0].partition("-")
    return (int(first), int(last) + 1) if unit == "bytes" and dash else None


def object_size(answer: UpstreamResponse) -> int | None:
    """Size of the whole object of a response, maybe a partial one."""
    if answer.status.startswith("206"):
        text = (sysmeta.find_header(answer.headers, "Content-Range") or "").rpartition("/")[2]
    else:
        text = sysmeta.find_header(answer.headers, "Content-Length") or ""
    return int(text) if text.isdigit() else None


def discard_body(body: Iterable[bytes], answer: UpstreamResponse) -> None:
    """Close a body; read a short one to its end first, so that the connection can be used again."""
    span = stored_span(answer)
    if span is not None and span[1] - span[0] > SKIP:
        close_if_possible(body)
    else:
        drain_and_close(body)


class SlicedBody(WrappedBody):
    """Bytes ``[start, stop)`` of ``body``, closing it with itself."""

    def __init__(self, body: Iterable[bytes], start: int, stop: int) -> None:
        super().__init__(body)
        self._pieces = slice_body(body, start, stop)


def slice_body(body: Iterable[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Bytes ``[start, stop)`` of ``body``; reads no further than necessary."""
    offset = 0
    try:
        for piece in body:
            end = offset + len(piece)
            if end > start:
                yield piece[max(0, start - offset) : stop - offset]
            offset = end
            if offset >= stop:
                return
        raise CorruptData(f"stored bytes ended at {offset}, expected {stop}")
    finally:
        close_if_possible(body)
