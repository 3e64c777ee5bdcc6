"""Calls that are made together: who comes while one is under way waits for its end, and goes with all who wait.

So nobody waits where nobody else calls, and the more call at the same time, the more share a call.  After a call for
several the next one begins some time later: what a call costs by itself, at three servers, is many times what a request
in it does.
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
    """One who calls."""

    def __init__(self, request: S) -> None:
        self.request = request
        self.over = threading.Event()
        self.answer: T | None = None


class GroupedCalls(Generic[S, T]):
    """
    :param call: makes one call for several requests; the answers in their order, None for what it leaves to others
    :param most: requests of one call
    :param gathers: seconds from the beginning of a call for several to that of the next one, at least
    :param start: begins a thread
    :param pause: lets other threads go on for some seconds
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
        """The answer to ``request``; None also when the call failed."""
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
