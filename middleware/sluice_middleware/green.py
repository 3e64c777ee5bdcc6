"""The one place that knows about green threads.

Swift is about to leave eventlet; it moved every use behind ``swift.common.concurrency``, and so
all that we need stands here: hand a call to a real thread, and call something again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from swift.common.concurrency import hubs, sleep, spawn, spawn_n, tpool

T = TypeVar("T")


class Pending(Protocol):
    """A call under way in a thread."""

    def wait(self) -> Any:
        """Its result; raises what it raised."""

    def kill(self) -> None:
        """Nobody wants the result."""


def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run ``function`` in a real thread while other green threads go on (about 100 µs)."""
    result: T = tpool.execute(function, *args)
    return result


def start(function: Callable[..., T], *args: Any) -> Pending:
    """Like :func:`in_thread`, but return at once."""
    pending: Pending = spawn(tpool.execute, function, *args)
    return pending


def hub() -> int:
    """Which hub runs the timers of this thread now; Swift takes another one after it first loaded a server."""
    return id(hubs.get_hub())


def each_second(function: Callable[[], None]) -> None:
    """Call ``function`` just after each wall-clock second, for ever; it must not raise."""

    def loop() -> None:
        while True:
            now = time.time()
            sleep(1.002 - now % 1.0)
            function()

    spawn_n(loop)
