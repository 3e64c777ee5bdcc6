"""Green threads and real threads; the only module that knows them.

Swift is about to leave eventlet; it moved every use behind ``swift.common.concurrency``, and so
everything of that kind is here: calls in real threads, timers, wake-ups between threads.

A call that is started here logs with the fields of the one that starts it (``sluice_core.process.logs``).
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

from swift.common.concurrency import (
    Event,
    GreenPool,
    Semaphore,
    hubs,
    patcher,
    sleep,
    spawn,
    spawn_n,
    tpool,
    trampoline,
)

from sluice_core.process.logs import with_log_fields

S = TypeVar("S")
T = TypeVar("T")
#: The name of threads of :func:`start_thread`.
IO_THREAD: Final = "sluice-io"
#: A lock of green threads, a context manager: eventlet's semaphore serves waiters first come, first served.
FifoLock = Semaphore


class Pending(Protocol):
    """A call that runs in a thread."""

    def wait(self) -> Any:
        """Wait for the result; raises what the call raised."""

    def kill(self) -> None:
        """Abandon the call: its result is not needed."""


def run_in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run ``function`` in a real thread while other green threads go on (about 100 µs)."""
    result: T = tpool.execute(with_log_fields(function), *args)
    return result


def map_concurrently(function: Callable[[S], T], items: Iterable[S], most: int) -> list[T]:
    """Results of ``function`` for each item, in their order; up to ``most`` green threads work at once."""
    return list(GreenPool(most).imap(with_log_fields(function), items))


def start_in_thread(function: Callable[..., T], *args: Any) -> Pending:
    """Like :func:`run_in_thread`, but return at once."""
    pending: Pending = spawn(tpool.execute, with_log_fields(function), *args)
    return pending


def hub_id() -> int:
    """Identifies the hub that runs the timers of this thread; Swift replaces it after loading a server."""
    return id(hubs.get_hub())


class _Seconds:
    """The calls of a hub just after each wall-clock second.

    One timer for all: the hub that Swift uses (``poll``) counts whole milliseconds, so that it busy-waits for
    up to one before each timer.
    """

    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []
        spawn_n(self._loop)

    def add(self, function: Callable[[], None]) -> None:
        """Call the function from the next second on."""
        self._due.append(function)

    def _loop(self) -> None:
        while True:
            sleep(1.002 - time.time() % 1.0)
            due, self._due = self._due, []
            for function in due:
                spawn_n(self._call, function)

    def _call(self, function: Callable[[], None]) -> None:
        """Call ``function`` and schedule it again when it has ended, so that it never runs twice at once."""
        try:
            function()
        finally:
            self._due.append(function)


#: By hub; calls of before a fork continue after it, as its timers do.
_seconds: WeakKeyDictionary[Any, _Seconds] = WeakKeyDictionary()


def each_second(function: Callable[[], None]) -> None:
    """Call ``function`` just after each wall-clock second, forever, in a green thread of its own."""
    here = hubs.get_hub()
    if here not in _seconds:
        _seconds[here] = _Seconds()
    _seconds[here].add(function)


def start_green(function: Callable[..., Any], *args: Any) -> Pending:
    """Run ``function`` in a green thread of its own, from the next moment on that this one waits."""
    pending: Pending = spawn(with_log_fields(function), *args)
    return pending


def call_later(seconds: float, function: Callable[[], None]) -> None:
    """Call ``function``, which must neither wait nor raise, after ``seconds``."""
    hubs.get_hub().schedule_call_global(seconds, function)


def on_readable(connection: socket.socket, function: Callable[[], bool]) -> None:
    """Call ``function`` each time there are bytes to read, until it returns False; only it may close ``connection``."""

    def loop() -> None:
        while True:
            trampoline(connection.fileno(), read=True)
            if not function():
                return

    spawn_n(loop)


class InterruptibleSleep:
    """A sleep of one green thread that other threads may end early; reusable."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: Event | None = None

    def wait(self, seconds: float) -> None:
        """Let other green threads run until :meth:`wake`, or for ``seconds``."""
        self._event = Event()
        try:
            self._event.wait(timeout=seconds)
        finally:
            self._event = None

    def wake(self) -> None:
        """Wake the green thread if it waits."""
        if self._event is not None and not self._event.ready():
            self._event.send()


def start_thread(function: Callable[[], None]) -> None:
    """Run ``function`` in a new real daemon thread; ``top -H`` shows its name.

    :raises RuntimeError: when the process cannot start more threads
    """

    def named() -> None:
        _be_called(IO_THREAD)
        try:
            function()
        finally:
            _leave_hub()

    patcher.original("threading").Thread(target=named, name=IO_THREAD, daemon=True).start()


def _be_called(name: str) -> None:
    """Set the name of this thread in the kernel, 15 bytes at most (proc(5))."""
    with suppress(OSError), open("/proc/thread-self/comm", "w", encoding="ascii") as file:
        file.write(name)


def _leave_hub() -> None:
    """Remove the hub that Swift's time-outs made in this thread.

    It is in a cycle with its greenlet, which refers to the thread's: the garbage collector would close its file late,
    and greenlet would search all objects, in the main thread, for references to the ended thread's greenlet.
    """
    hub = getattr(hubs._threadlocal, "hub", None)
    if hub is not None:
        del hubs._threadlocal.hub
        hub.greenlet = None


class Notifier:
    """Wakes green threads of the present hub from real threads, through one eventfd."""

    def __init__(self) -> None:
        self._file = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pending: deque[Event] = deque()
        spawn_n(self._listen)

    def event(self) -> ThreadEvent:
        """An event that a green thread of this hub can wait for."""
        return ThreadEvent(self)

    def notify(self, event: Event) -> None:
        """Wake the waiter of ``event``; from any thread."""
        self._pending.append(event)
        os.eventfd_write(self._file, 1)

    def _listen(self) -> None:
        while True:
            trampoline(self._file, read=True)
            os.eventfd_read(self._file)
            while self._pending:
                self._pending.popleft().send()


class ThreadEvent:
    """An event that a real thread sets and one green thread waits for."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._event = Event()

    def set(self) -> None:
        """Wake the waiting green thread; once, from any thread."""
        self._notifier.notify(self._event)

    def wait(self) -> None:
        """Let other green threads run until :meth:`set`."""
        self._event.wait()


def pause(seconds: float) -> None:
    """Let other green threads run for some seconds."""
    sleep(seconds)


def yield_control() -> None:
    """Let other green threads run."""
    sleep(0)
