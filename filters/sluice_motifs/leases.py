"""Leases of items within one process, and holding several of them at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from sluice_motifs.shim import Lease, Leases

#: Seconds that a lease lasts without being renewed.
LASTS: Final = 10.0


class LocalLeases:
    """Leases of one process; implements ``Leases``."""

    def __init__(self, lasts: float = LASTS, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts = lasts
        self._clock = clock
        self._mutex = threading.Lock()
        self._tokens = 0
        self._held: dict[str, tuple[int, float]] = {}

    def acquire(self, item: str) -> Lease | None:
        now = self._clock()
        with self._mutex:
            held = self._held.get(item)
            if held is not None and held[1] > now:
                return None
            self._tokens += 1
            self._held[item] = (self._tokens, now + self._lasts)
            return Lease(item, self._tokens)

    def renew(self, lease: Lease) -> bool:
        with self._mutex:
            ours = self._held.get(lease.item, (0, 0.0))[0] == lease.token
            if ours:
                self._held[lease.item] = (lease.token, self._clock() + self._lasts)
            return ours

    def release(self, lease: Lease) -> None:
        with self._mutex:
            if self._held.get(lease.item, (0, 0.0))[0] == lease.token:
                del self._held[lease.item]


class HeldLeases:
    """All of some items' leases or none; a context manager that gives them back."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._held: dict[str, Lease] = {}

    @property
    def items(self) -> frozenset[str]:
        """The items whose leases are held."""
        return frozenset(self._held)

    def acquire(self, items: Iterable[str]) -> bool:
        """False when one of them is not to be had; those that are held stay."""
        for item in sorted(items):
            lease = self._leases.acquire(item)
            if lease is None:
                return False
            self._held[item] = lease
        return True

    def renew(self) -> bool:
        """False when one of them is over."""
        return all([self._leases.renew(lease) for lease in self._held.values()])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lease in self._held.values():
            self._leases.release(lease)


class Renewal:
    """Keeps a lease while it is called often enough; a lease that is lost all the same only costs double work."""

    def __init__(self, leases: Leases, lease: Lease, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._lease = lease
        self._clock = clock
        self._due = clock() + LASTS / 3

    def __call__(self) -> None:
        if self._clock() >= self._due:
            self._leases.renew(self._lease)
            self._due = self._clock() + LASTS / 3
