"""A WSGI request as its request filters see and change it: headers, streams and bodies.

Streams and bodies contain failures of filters, and end the filters once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from sluice_filters.api import Stream
from sluice_filters.visits import Headers
from sluice_middleware.wsgi.response import Env, WrappedBody

#: Runs a call of a filter; its failures are logged and become a ``FilterError``.
Contained = Callable[[Callable[[], bytes]], bytes]
#: Ends the filters of a request; called with whether the body was complete.
End = Callable[[bool], None]

#: Headers that no visit sees or sets: system headers, and those in ``Call.size``.
_HIDDEN: Final = (
    "HTTP_X_BACKEND_",
    "HTTP_X_OBJECT_SYSMETA_",
    "HTTP_X_OBJECT_TRANSIENT_SYSMETA_",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_CONTENT_LENGTH",
    "HTTP_CONTENT_TYPE",
)


@functools.lru_cache(maxsize=1024)
def _shown(name: str) -> str:
    """The name by which a visit sees the environment's ``name``; empty when it does not see it."""
    seen = name.startswith("HTTP_") and not name.startswith(_HIDDEN)
    return name[5:].replace("_", "-").title() if seen else ""


def request_headers(env: Env) -> Headers:
    """The headers of a request that a visit may see."""
    headers = Headers()
    dict.update(headers, {shown: value for name, value in env.items() if (shown := _shown(name))})
    if env.get("CONTENT_TYPE"):
        headers["Content-Type"] = env["CONTENT_TYPE"]
    return headers


def write_headers(env: Env, headers: Headers) -> None:
    """Set ``headers`` as those of the request, as far as a visit may."""
    wanted = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
    kind = wanted.pop("HTTP_CONTENT_TYPE", None)
    if kind is None:
        env.pop("CONTENT_TYPE", None)
    else:
        env["CONTENT_TYPE"] = kind
    wanted = {name: value for name, value in wanted.items() if not name.startswith(_HIDDEN)}
    for name in [name for name in env if name.startswith("HTTP_") and not name.startswith(_HIDDEN)]:
        if name not in wanted:
            del env[name]
    env.update(wanted)


def set_headers(env: Env, headers: Mapping[str, str]) -> None:
    """Add ``headers`` to those of the request."""
    for name, value in headers.items():
        folded = name.upper().replace("-", "_")
        env[folded if folded in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{folded}"] = value


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
    """The encoder of visits that change the body irreversibly: there are no records."""

    def __init__(self, stream: Stream) -> None:
        self.feed = stream.feed
        self.finish = stream.finish

    def settled(self) -> bool:
        """False: it is never certain that the bytes pass unchanged."""
        return False

    def records(self) -> tuple[dict[str, Any], ...]:
        """None: no records are stored, since a GET does not decode the body."""
        return ()


class FinalList(list[bytes]):
    """A list body, as an error's, which Swift's middlewares may iterate twice; calls ``end`` when it is closed."""

    def __init__(self, body: Iterable[bytes], end: End) -> None:
        super().__init__(body)
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        yield from list.__iter__(self)
        self._end(True)

    def close(self) -> None:
        """Call ``end``: the list was complete from the start."""
        self._end(True)


class FinalBody(WrappedBody):
    """The body as the server gets it; calls ``end`` when it fails or is closed."""

    def __init__(self, body: Iterable[bytes], end: End, bodiless: bool) -> None:
        """
        :param bodiless: the response has no body to read, so that it is complete at once
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
