"""The base of all actors: an object with slots and four life-cycle methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Delivery = tuple["Actor", Any]
Work = Iterator[object]

NEW: Final = 0
RUNNING: Final = 1
SUSPENDED: Final = 2
STOPPED: Final = 3


class Actor:
    """Base of all actors.  The system alone calls these methods, one at a time, on its loop."""

    __slots__ = ("_life",)

    def __init__(self) -> None:
        self._life = NEW

    def on_start(self) -> None:
        """Called once after ``spawn`` and once after each suspension.

        An exception counts as a failure: the actor is suspended and started again later.
        """

    def on_message(self, message: Any) -> Work | None:
        """Called for each message.  May answer an iterator for work that wants to be cut up.

        An exception (here or in the iterator) drops the message and suspends the actor.
        """

    def on_failure(self, error: Exception) -> None:
        """Called after an exception, before the suspension begins.

        An exception in here is logged and changes nothing.
        """

    def on_stop(self) -> None:
        """Called once, at ``stop`` or when the system closes; no message comes after it.

        An exception is logged; the actor is gone all the same.
        """

    @property
    def running(self) -> bool:
        """True between a successful start and a failure or the stop."""
        return self._life == RUNNING
