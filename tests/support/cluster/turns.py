"""Work that goes on in a thread while a test changes what is below it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self


class Turns:
    """Calls ``turn`` again and again, ``pause`` seconds apart; a subclass notes in ``wrong`` what failed."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.wrong: list[Any] = []
        self.count = 0

    def turn(self) -> None:
        """One turn, number ``count``."""
        raise NotImplementedError

    def go_on(self, turns: int, eventually: Callable[[Callable[[], bool], float], object]) -> None:
        """Wait until so many more turns were begun and ended."""
        enough = self.count + 1 + turns
        eventually(lambda: self.count >= enough, 60.0)

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            self.turn()
            self.count += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert not self.wrong, f"{len(self.wrong)} faults in {self.count} turns: {self.wrong[:5]}"
