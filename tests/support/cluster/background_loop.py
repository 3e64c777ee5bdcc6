"""Repeats a step in a thread while a test changes the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self


class BackgroundLoop:
    """Calls :meth:`step` every ``pause`` seconds; a subclass adds failures to ``failures``."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failures: list[Any] = []
        self.count = 0

    def step(self) -> None:
        """One step, number ``count``."""
        raise NotImplementedError

    def wait_for_steps(self, steps: int, eventually: Callable[[Callable[[], bool], float], object]) -> None:
        """Wait until this many more steps have started and ended."""
        enough = self.count + 1 + steps
        eventually(lambda: self.count >= enough, 60.0)

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            self.step()
            self.count += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert not self.failures, f"{len(self.failures)} faults in {self.count} steps: {self.failures[:5]}"
