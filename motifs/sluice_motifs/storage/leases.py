"""Leases of items within one process, groups of held leases, and renewal during long work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from sluice_core.errors import PeerError
from sluice_motifs.storage.shim import Lease, Leases

log = logging.getLogger(__name__)

#: Seconds that a lease lasts without renewal.
LASTS: Final = 10.0
#: Seconds for which a new or renewed lease is not renewed: it is valid even if Redis loses it.
FRESH: Final = 2.0


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
            ours = self._held.get(lease.item, (-1, 0.0))[0] == lease.token
            if ours:
                self._held[lease.item] = (lease.token, self._clock() + self._lasts)
            return ours

    def release(self, *leases: Lease) -> None:
        with self._mutex:
            for lease in leases:
                if self._held.get(lease.item, (-1, 0.0))[0] == lease.token:
                    del self._held[lease.item]


class HeldLeases:
    """Leases of some items; a context manager that releases them."""

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._clock = clock
        self._held: dict[str, Lease] = {}
        #: When the first of them was requested, or all of them were renewed.
        self._since = 0.0

    @property
    def items(self) -> frozenset[str]:
        """The items whose leases are held."""
        return frozenset(self._held)

    def acquire(self, items: Iterable[str]) -> bool:
        """Acquire these leases, too; return False when one of them is not free, without releasing the held ones."""
        for item in sorted(set(items) - self._held.keys()):
            self._since = self._since if self._held else self._clock()
            lease = self._leases.acquire(item)
            if lease is None:
                return False
            self._held[item] = lease
        return True

    def renew(self) -> bool:
        """Renew all leases for at least :data:`LASTS` less :data:`FRESH` seconds; return False when one has ended."""
        now = self._clock()
        if now - self._since < FRESH:
            return True
        over = [lease for lease in self._held.values() if not self._leases.renew(lease)]
        if not over:
            self._since = now
        return not over

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        release(self._leases, *self._held.values())


def release(leases: Leases, *held: Lease) -> None:
    """Release leases; those that cannot be released now expire."""
    try:
        leases.release(*held)
    except PeerError as error:
        log.info("leases of %s are not given back: %s", ", ".join(f"`{one.item}`" for one in held), error)


class Renewal:
    """Renews leases during long work, if it is called often enough.

    An expansion that loses its lease only costs double work; a contraction checks before it writes.
    """

    def __init__(self, renew: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._renew = renew
        self._clock = clock
        self._due = clock() + LASTS / 3

    def __call__(self) -> None:
        now = self._clock()
        if now >= self._due:
            self._due = now + LASTS / 3
            try:
                self._renew()
            except PeerError as error:
                log.info("leases are not renewed: %s", error)
