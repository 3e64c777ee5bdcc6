"""Streams and bodies around the request filters of one request: they contain failures and end the filters once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from sluice_filters.api import Stream
from sluice_middleware.wsgi.response import WrappedBody

#: Runs a call of a filter; its failures are logged and become a ``FilterError``.
Contained = Callable[[Callable[[], bytes]], bytes]
#: Ends the filters of a request; told whether the body was complete.
End = Callable[[bool], None]


class ContainedStream(Stream):
    """A visit's stream whose failures are contained."""

    def __init__(self, stream: Stream, contained: Contained) -> None:
        self._stream = stream
        self._contained = contained

    def feed(self, data: bytes) -> bytes:
        return self._contained(partial(self._stream.feed, data))

    def finish(self) -> bytes:
        return self._contained(self._stream.finish)


class RewritingEncoder:
    """The encoder of visits that change the body for good: nothing undoes it."""

    def __init__(self, stream: Stream) -> None:
        self.feed = stream.feed
        self.finish = stream.finish

    def settled(self) -> bool:
        """False: it is never certain that the bytes pass unchanged."""
        return False

    def records(self) -> tuple[dict[str, Any], ...]:
        """None: nothing is written on the object, since nothing is undone on GET."""
        return ()


class FinalList(list[bytes]):
    """A list body, as an error's, which Swift's middlewares may iterate twice; calls ``end`` with its own end."""

    def __init__(self, body: Iterable[bytes], end: End) -> None:
        super().__init__(body)
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        yield from list.__iter__(self)
        self._end(True)

    def close(self) -> None:
        """The list was complete from the start."""
        self._end(True)


class FinalBody(WrappedBody):
    """The body as the server gets it; calls ``end`` when it fails or is closed."""

    def __init__(self, body: Iterable[bytes], end: End, bodiless: bool) -> None:
        """
        :param bodiless: the response has no body to be read, so that it is complete at once
        """
        super().__init__(body)
        self._end = end
        self._complete = bodiless

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self._complete = True
            raise
        except BaseException:
            self._end(False)
            raise

    def close(self) -> None:
        """Close the body, then end the filters."""
        try:
            super().close()
        finally:
            self._end(self._complete)
