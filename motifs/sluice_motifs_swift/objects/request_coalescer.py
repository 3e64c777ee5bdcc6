"""Looks at items that many open at once: who comes while somebody looks waits for the next look, and shares it.

A look serves an open that came before it began.  So each item is looked at by one at a time, whatever the number of its
readers, and nobody gets a look that is older than its own open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Look(Generic[T]):
    """One look, which may not have begun."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.found: list[T] = []
        self.error: Exception | None = None


class RequestCoalescer(Generic[T]):
    """:param look: looks at an item; may block"""

    def __init__(self, look: Callable[[str], T]) -> None:
        self._look = look
        self._mutex = threading.Lock()
        self._waiting: dict[str, _Look[T]] = {}
        self._running: dict[str, _Look[T]] = {}

    def __call__(self, name: str) -> T:
        """What a look that begins from now on finds; raises what it raises."""
        with self._mutex:
            look = self._waiting.get(name)
            ours = look is None
            if look is None:
                look = self._waiting[name] = _Look()
        if ours:
            self._run(name, look)
        else:
            look.done.wait()
        if look.error is not None:
            raise look.error
        return look.found[0]

    def _run(self, name: str, look: _Look[T]) -> None:
        with self._mutex:
            before = self._running.get(name)
        if before is not None:
            before.done.wait()
        with self._mutex:
            del self._waiting[name]
            self._running[name] = look
        try:
            look.found.append(self._look(name))
        except Exception as error:  # noqa: BLE001  whatever it is, all who share the look get it
            look.error = error
        finally:
            with self._mutex:
                if self._running.get(name) is look:
                    del self._running[name]
            if not look.found and look.error is None:  # what looks is ended, as a green thread may be
                look.error = RuntimeError(f"the look at `{name}` was ended")
            look.done.set()
