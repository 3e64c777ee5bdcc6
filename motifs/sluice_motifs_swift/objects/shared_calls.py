"""Calls that several threads share: one call for several requests, or one view of an item for several threads.

:class:`GroupedCalls`: a request that arrives during a call waits for its end, and is sent with all waiting ones.  So
no request waits without concurrent ones, and the more arrive at the same time, the more share a call.  After a call for
several requests the next one begins some time later: the fixed cost of a call, at three servers, is many times that of
a request in it.

:class:`RequestCoalescer`: a view serves an open that came before it began.  So one thread at a time views an item,
whatever the number of its readers, and no reader gets a view that is older than its own open.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

log = logging.getLogger(__name__)
S = TypeVar("S")
T = TypeVar("T")


class _Turn(Generic[S, T]):
    """A caller that waits for its response."""

    def __init__(self, request: S) -> None:
        self.request = request
        self.over = threading.Event()
        self.answer: T | None = None


class GroupedCalls(Generic[S, T]):
    """
    :param call: makes one call for several requests; returns the responses in their order, None for requests left to
        others
    :param most: the most requests of one call
    :param gathers: seconds from the start of a call for several to that of the next one, at least
    :param start: starts a thread
    :param pause: lets other threads run for some seconds
    """

    def __init__(
        self,
        call: Callable[[Sequence[S]], Sequence[T | None]],
        most: int,
        gathers: float,
        start: Callable[[Callable[[], None]], object],
        pause: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._call = call
        self._most = most
        self._gathers = gathers
        self._start = start
        self._pause = pause
        self._clock = clock
        self._mutex = threading.Lock()
        self._waiting: list[_Turn[S, T]] = []
        self._busy = False

    def __call__(self, request: S) -> T | None:
        """The response to ``request``; None also when the call failed."""
        turn: _Turn[S, T] = _Turn(request)
        with self._mutex:
            self._waiting.append(turn)
            idle, self._busy = not self._busy, True
        if idle:
            self._start(self._work)
        turn.over.wait()
        return turn.answer

    def _work(self) -> None:
        while turns := self._next():
            due = self._clock() + self._gathers
            try:
                answers = self._call([one.request for one in turns])
                for turn, answer in zip(turns, answers, strict=True):
                    turn.answer = answer
            except Exception:
                log.exception("a call for %d requests failed", len(turns))
            finally:
                for turn in turns:
                    turn.over.set()
            if len(turns) > 1 and (left := due - self._clock()) > 0:
                self._pause(left)

    def _next(self) -> Sequence[_Turn[S, T]]:
        with self._mutex:
            turns, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            self._busy = bool(turns)
        return turns


class _View(Generic[T]):
    """One view of an item, which may not have started."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.found: list[T] = []
        self.error: Exception | None = None


class RequestCoalescer(Generic[T]):
    """:param fetch: views an item; may block"""

    def __init__(self, fetch: Callable[[str], T]) -> None:
        self._fetch = fetch
        self._mutex = threading.Lock()
        self._waiting: dict[str, _View[T]] = {}
        self._running: dict[str, _View[T]] = {}

    def __call__(self, name: str) -> T:
        """The result of a view that starts from now on; raises the error of ``fetch``."""
        with self._mutex:
            view = self._waiting.get(name)
            ours = view is None
            if view is None:
                view = self._waiting[name] = _View()
        if ours:
            self._run(name, view)
        else:
            view.done.wait()
        if view.error is not None:
            raise view.error
        return view.found[0]

    def _run(self, name: str, view: _View[T]) -> None:
        with self._mutex:
            before = self._running.get(name)
        if before is not None:
            before.done.wait()
        with self._mutex:
            del self._waiting[name]
            self._running[name] = view
        try:
            view.found.append(self._fetch(name))
        except Exception as error:  # noqa: BLE001  whatever it is, all who share the view get it
            view.error = error
        finally:
            with self._mutex:
                if self._running.get(name) is view:
                    del self._running[name]
            if not view.found and view.error is None:  # the viewing thread was killed, as a green thread may be
                view.error = RuntimeError(f"the look at `{name}` was ended")
            view.done.set()
