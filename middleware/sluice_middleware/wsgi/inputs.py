"""Wrappers of ``wsgi.input``, and their base: observed by filters, rewound, tracked to the end, or an iterable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sluice_core.errors import SluiceError
from sluice_filters.api import Stream
from sluice_middleware.swift.proxy_api import HTTPException, HTTPServiceUnavailable, Request, close_if_possible
from sluice_middleware.wsgi.policy_lookup import content_length
from sluice_middleware.wsgi.response import Env


def service_unavailable(env: Env, error: SluiceError) -> HTTPException:
    """503 with the reason, as an exception that Swift's proxy turns into the response."""
    return HTTPServiceUnavailable(request=Request(env), body=f"sluice: {error}\n", content_type="text/plain")


class WrappedInput:
    """``wsgi.input`` that reads from ``source``: the base of all wrappers."""

    __slots__ = ("_source",)

    def __init__(self, source: Any) -> None:
        self._source = source


class TransparentInput(WrappedInput):
    """A wrapper with the bytes of ``source``, and its attributes other than reads (eventlet's ``100 Continue``)."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class ObservedInput(WrappedInput):
    """For streams that change no content: they see the bytes that Swift gets.

    A stream gets the end of the body before the last bytes are returned, wherever the reader stops.
    """

    def __init__(self, env: Env, stream: Stream) -> None:
        super().__init__(env["wsgi.input"])
        self._env = env
        self._stream = stream
        self._left = content_length(env)
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Return the stream's output for the next ``size`` bytes (at most) of the body.

        :raises HTTPException: 503 when the stream failed
        """
        while not self._ended:
            data: bytes = self._source.read(size)
            if self._left is not None:
                self._left -= len(data)
            self._ended = not data or self._left == 0
            try:
                data = self._stream.feed(data) if data else b""
                if self._ended:
                    data += self._stream.finish()
            except SluiceError as error:
                raise service_unavailable(self._env, error) from error
            if data:
                return data
        return b""


class RewoundInput(WrappedInput):
    """A body whose sample was read, put together again."""

    def __init__(self, sample: bytes, source: Any) -> None:
        super().__init__(source)
        self._sample = memoryview(sample)

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes at most, all when negative."""
        if not self._sample:
            rest: bytes = self._source.read(size)
            return rest
        if size < 0:
            everything: bytes = bytes(self._sample) + self._source.read()
            self._sample = self._sample[:0]
            return everything
        data = bytes(self._sample[:size])
        self._sample = self._sample[size:]
        return data


class TrackedInput(TransparentInput):
    """Records whether the whole body was read; ``expected`` is its Content-Length, None unknown."""

    def __init__(self, source: Any, expected: int | None) -> None:
        super().__init__(source)
        self._left = expected
        self.complete = expected == 0

    def read(self, size: int = -1) -> bytes:
        """Read as the wrapped input does."""
        data: bytes = self._source.read(size)
        if not data:
            self.complete = self.complete or (size != 0 and not self._left)
        elif self._left is not None:
            self._left -= len(data)
            self.complete = self._left <= 0
        return data


class IterableInput:
    """The body of one of Sluice's own requests, from an iterable."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._body = pieces
        self._pieces: Iterator[bytes] = iter(pieces)
        self._ready = b""

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes at most, all when negative; empty at the end."""
        if size < 0:
            data, self._ready = self._ready + b"".join(self._pieces), b""
            return data
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._ready = piece
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def close(self) -> None:
        """Close at the end of the request."""
        close_if_possible(self._body)
