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
    """503 with the reason, as an exception that Swift's proxy answers with."""
    return HTTPServiceUnavailable(request=Request(env), body=f"sluice: {error}\n", content_type="text/plain")


class WrappedInput:
    """``wsgi.input`` in the place of ``source``: the base of all that read from another one."""

    __slots__ = ("_source",)

    def __init__(self, source: Any) -> None:
        self._source = source


class TransparentInput(WrappedInput):
    """One that gives the bytes of ``source``: what is no ``read`` (eventlet's ``100 Continue``) is the source's."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class ObservedInput(WrappedInput):
    """For streams that change no content: they see the bytes, Swift gets them.

    A stream is told of the end before the last bytes go on, wherever the reader stops.
    """

    def __init__(self, env: Env, stream: Stream) -> None:
        super().__init__(env["wsgi.input"])
        self._env = env
        self._stream = stream
        self._left = content_length(env)
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """What the stream passed on of the next ``size`` bytes (at most) of the body.

        :raises HTTPException: 503 when it failed
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
    """A body of which a sample was read, put together again."""

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
    """Knows whether the whole body was read; ``expected`` is its announced length, None unknown."""

    def __init__(self, source: Any, expected: int | None) -> None:
        super().__init__(source)
        self._left = expected
        self.complete = expected == 0

    def read(self, size: int = -1) -> bytes:
        """As the wrapped input."""
        data: bytes = self._source.read(size)
        if not data:
            self.complete = self.complete or (size != 0 and not self._left)
        elif self._left is not None:
            self._left -= len(data)
            self.complete = self._left <= 0
        return data


class IterableInput:
    """The body of a request of ours, out of an iterable."""

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
        """The request is over."""
        close_if_possible(self._body)
