"""Which host runs which policy's actor.

One host runs them all today.  Sharding over several hosts is another implementation of the same
protocol (consistent hashing over the live hosts); the host asks ``owns`` for each policy and looks
at all of them again whenever it is told that ownership changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Ownership(Protocol):
    """Who runs what."""

    def owns(self, policy_id: str) -> bool:
        """True when this host is to run the actor of this policy now; must be cheap."""

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called, on the host's loop, after answers of ``owns`` may have changed."""


class SingleHost:
    """Everything is ours, for ever."""

    def owns(self, policy_id: str) -> bool:
        return True

    def on_change(self, changed: Callable[[], None]) -> None:
        """Never calls ``changed``."""
