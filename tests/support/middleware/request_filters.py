"""Request filters for tests of their host: their visits record their calls, and act as a test defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter, Stream
from sluice_filters.visits import Call, Reply, Visit

#: ``(filter, event)`` or ``(filter, event, more)``.
Event = tuple[Any, ...]


class Upper(Stream):
    """Changes the content."""

    def feed(self, data: bytes) -> bytes:
        return bytes(data).upper()


class Counting(Stream):
    """Passes its input on, and records it."""

    def __init__(self, log: list[Event], name: str) -> None:
        self._log = log
        self._name = name

    def feed(self, data: bytes) -> bytes:
        self._log.append((self._name, "bytes", len(data)))
        return data

    def finish(self) -> bytes:
        self._log.append((self._name, "finish"))
        return b""


class Breaking(Stream):
    """Passes ``good`` bytes and then fails."""

    def __init__(self, error: Exception, good: int = 0) -> None:
        self._error = error
        self._good = good

    def feed(self, data: bytes) -> bytes:
        self._good -= len(data)
        if self._good < 0:
            raise self._error
        return data


class SpyFilter(Filter):
    """``acts`` are functions by the name of a visit's method (or ``visit``), called with the call and its arguments."""

    log: ClassVar[list[Event]]
    acts: ClassVar[dict[str, Callable[..., Any]]]
    calls: ClassVar[list[Call]]

    def visit(self, call: Call) -> Visit | None:
        self.calls.append(call)
        if "visit" in self.acts:
            made: Visit | None = self.acts["visit"](call)
            return made
        return _Spy(self, call)


class _Spy(Visit):
    def __init__(self, spy: SpyFilter, call: Call) -> None:
        self._spy = spy
        self._call = call

    def _act(self, what: str, default: Any, *given: Any) -> Any:
        self._spy.log.append((self._spy.info.keyword, what))
        act = self._spy.acts.get(what)
        return default if act is None else act(self._call, *given)

    def request(self) -> Reply | None:
        reply: Reply | None = self._act("request", None)
        return reply

    def wait(self) -> None:
        self._act("wait", None)

    def body_in(self) -> Stream | None:
        stream: Stream | None = self._act("body_in", None)
        return stream

    def response(self, reply: Reply) -> Reply:
        changed: Reply = self._act("response", reply, reply)
        return changed

    def body_out(self, reply: Reply) -> Stream | None:
        stream: Stream | None = self._act("body_out", None, reply)
        return stream

    def end(self, complete: bool) -> None:
        self._spy.log.append((self._spy.info.keyword, "end", complete))
        if "end" in self._spy.acts:
            self._spy.acts["end"](self._call)


def spy(name: str, stage: int, **traits: Any) -> type[SpyFilter]:
    """A new class of spies with a log of its own."""
    info = ActionInfo(keyword=name, kind=FILTER, help="spy", stage=stage, on_put=False, on_request=True, **traits)
    return type("Spy", (SpyFilter,), {"info": info, "log": [], "acts": {}, "calls": []})
