"""Real threads that are lent to streams, one each; a thread runs the steps of its stream in order.

This module knows neither Swift nor green threads.  Its caller starts real threads (Swift replaces those of
``threading``) and is notified in such a thread when a step ends.  All else is called in one thread only, that of
Swift's hub.

Theory of operation.  A thread that was returned waits for the next stream; the one that waited shortest is lent first,
and a thread that was not lent for a while ends.  A thread keeps its level while more threads may be started: BFQ lets
threads share a queue whose reads are close together, and a thread that changed its level would then change that of the
other, too.  There is no lock: to lend a thread is to remove it from the list of waiting threads, to end is to remove
oneself from the same list, and only one of two attempts succeeds.
"""

from __future__ import annotations

from _queue import Empty, SimpleQueue  # Swift replaces ``queue`` by a green one
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from sluice_core.messages.bandwidth import NO_CLASS

#: Seconds after which a thread that is not lent ends.
IDLE_SECONDS: Final = 10.0

Start = Callable[[Callable[[], None]], None]


class StepEvent(Protocol):
    """Set in the thread when a step ends; the caller that started the step waits for it."""

    def set(self) -> None:
        """Wake the waiter; must not raise."""

    def wait(self) -> Any:
        """Wait until it is set."""


class ThreadStep:
    """One call in a thread."""

    __slots__ = ("_error", "_event", "_function", "_result", "finished", "level")

    def __init__(self, function: Callable[[], Any], level: int, event: StepEvent | None) -> None:
        self._function: Callable[[], Any] | None = function
        self._event = event
        self._result: Any = None
        self._error: BaseException | None = None
        self.level = level
        self.finished = False

    def run(self) -> None:
        """Make the call, in the thread."""
        function, self._function = self._function, None
        try:
            self._result = function() if function is not None else None
        except BaseException as error:  # noqa: BLE001 -- whoever waits gets it, Swift's time-outs too
            self._error = error
        function = None
        self.finished = True
        if self._event is not None:
            self._event.set()

    def wait(self) -> Any:
        """Wait for the call and return what it returned; called once, when the step has an event.

        Other green threads run meanwhile, even when the step has ended: otherwise fast steps, as from the page
        cache, would keep them from running.
        """
        if self._event is not None:
            self._event.wait()
        error, self._error = self._error, None
        result, self._result = self._result, None
        if error is not None:
            raise error
        return result


class _Thread:
    """A real thread and its queued steps."""

    def __init__(self, pool: IoThreads) -> None:
        self._pool = pool
        self.level = NO_CLASS
        self.steps: SimpleQueue[ThreadStep | None] = SimpleQueue()

    def run(self) -> None:
        """Run steps until the thread is no longer needed."""
        pool = self._pool
        while True:
            try:
                step = self.steps.get(timeout=pool.idle_seconds)
            except Empty:
                if pool.retire(self):
                    return
                continue
            if step is None:
                pool.return_thread(self)
                continue
            if step.level != self.level:
                self.level = step.level
                pool.set_level(step.level)
            step.run()
            step = None


class ThreadLease:
    """A thread while it is lent to one stream."""

    def __init__(self, thread: _Thread) -> None:
        self._thread: _Thread | None = thread
        self._last: ThreadStep | None = None

    def __del__(self) -> None:
        self.release()

    @property
    def busy(self) -> bool:
        """Whether the last step has not ended."""
        return self._last is not None and not self._last.finished

    def start(self, function: Callable[[], Any], level: int, event: StepEvent | None = None) -> ThreadStep:
        """Queue ``function`` behind all earlier steps, with I/O of ``level``.

        :raises ValueError: after :meth:`release`
        """
        if self._thread is None:
            raise ValueError("the thread was given back")
        step = self._last = ThreadStep(function, level, event)
        self._thread.steps.put(step)
        return step

    def release(self, last: Callable[[], Any] | None = None) -> None:
        """Return the thread; ``last`` is called after the last step, now or later in the thread.

        An error that it raises in the thread is dropped.  A second release has no effect.
        """
        thread, self._thread = self._thread, None
        later = last is not None and self.busy
        if thread is not None:
            if later and last is not None:
                thread.steps.put(ThreadStep(last, thread.level if self._last is None else self._last.level, None))
            thread.steps.put(None)
        if last is not None and not later:
            last()


class IoThreads:
    """The threads of one process, as many as are needed and at most ``most``."""

    def __init__(
        self, start: Start, set_level: Callable[[int], None], most: int, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        """
        :param start: runs a function in a new daemon thread that is real
        :param set_level: gives the calling thread's I/O a level (0 to 7, or idle); must not raise
        """
        self._start = start
        self.set_level = set_level
        self.idle_seconds = idle_seconds
        self._most = most
        self._all: set[_Thread] = set()
        self._resting: deque[_Thread] = deque()

    def __len__(self) -> int:
        """The number of threads."""
        return len(self._all)

    def lend(self, level: int = NO_CLASS) -> ThreadLease | None:
        """Lend a thread to a stream, of ``level`` if possible; return None when ``most`` threads are lent."""
        for thread in reversed(self._resting.copy()):
            if thread.level == level and self._take(thread):
                return ThreadLease(thread)
        if len(self._all) >= self._most:
            with suppress(IndexError):
                return ThreadLease(self._resting.pop())
            return None
        thread = _Thread(self)
        self._all.add(thread)
        try:
            self._start(thread.run)
        except RuntimeError:  # the process cannot start more threads
            self._all.discard(thread)
            return None
        return ThreadLease(thread)

    def return_thread(self, thread: _Thread) -> None:
        """Called by a thread that was returned."""
        self._resting.append(thread)

    def retire(self, thread: _Thread) -> bool:
        """Called by a thread that was not lent for a while; return False when it was lent just now."""
        if not self._take(thread):  # it is lent, though its stream has been idle
            return False
        self._all.discard(thread)
        return True

    def _take(self, thread: _Thread) -> bool:
        """Remove a waiting thread from the list; return False when another caller was first."""
        try:
            self._resting.remove(thread)
        except ValueError:
            return False
        return True
