"""Waits for a roll-out: until all live nodes have acknowledged an epoch, or a time limit.

Each waiting request occupies a thread of its worker.  One thread always stays free for other requests: a request
that finds no free place is answered at once with the present state of the roll-out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.selectors import cluster_now

LONGEST: Final = 30.0
_STEP: Final = 0.02


def wait_acknowledged(backend: Backend, epoch: int, seconds: float) -> bool:
    """Whether ``epoch`` is acknowledged by all live nodes, at most ``seconds`` from now."""
    return wait_until(backend, lambda: not cluster_now(backend).pending(epoch), seconds)


def wait_until(backend: Backend, done: Callable[[], bool], seconds: float, step: float = _STEP) -> bool:
    """Whether ``done`` comes true, at most ``seconds`` from now; nothing is asked where there is no place to wait.

    :param step: seconds between two times that it is asked
    """
    if seconds <= 0 or not backend.waiters.acquire(blocking=False):
        return False
    deadline = time.monotonic() + seconds
    try:
        while not done():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return False
            time.sleep(min(step, rest))
        return True
    finally:
        backend.waiters.release()
