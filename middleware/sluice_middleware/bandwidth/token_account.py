"""The credit of one flow in one worker: a token account without I/O, on a given clock.

Credit is a number of bytes that may pass.  It is requested in advance, enough for a tenth of a second, and again when
half of it is used.  Bytes are charged before they pass, so that they never exceed the credit granted.  Only
:meth:`TokenAccount.charge` and :meth:`TokenAccount.add_debt` make debt, which is paid before anything else passes.

While the agent is unreachable the account is detached: it fills itself at its last rate, and drops that credit when
the agent returns.  A flow that never had a rate uses the fallback rate of its method, or is unlimited without one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import FREE

#: Bytes of the smallest request.
LEAST: Final = 64 * 1024
#: Bytes of the largest request, beyond the bytes that transfers wait for.
MOST: Final = 8 * 1024 * 1024
#: Seconds of its rate that an account holds or has requested.
AHEAD: Final = 0.1
#: Seconds of its rate that a detached account fills up to.
BURST: Final = 0.25
#: Bytes per second of a detached account whose rate was 0, and the least fallback rate: no transfer stops forever.
_CRAWL: Final = 64 * 1024
#: The largest debt for unpaid bytes, in seconds of the account's rate, or one piece when that is more.
MOST_DEBT: Final = 1.0
#: Seconds between two measurements of the speed.
_LOOK: Final = 0.1


@dataclass(slots=True, eq=False)
class TokenAccount:
    """Credit of ``flow``; ``requested`` bytes were requested and not granted, ``free``: no credit is needed for now."""

    flow: Flow
    clock: Callable[[], float] = time.monotonic
    free: bool = False
    #: The agent is unreachable.
    detached: bool = False
    #: Bytes per second while detached; None before the first grant, or after a grant without a limit.
    rate: float | None = None
    #: Bytes that may pass now; negative while there is debt.
    credit: int = 0
    requested: int = 0
    #: The policies' ceiling over the whole cluster in bytes per second, as far as this worker knows; 0: none.
    ceiling: float = 0.0
    _filled: float = field(init=False)
    _looked: float = field(init=False)
    _passed: int = 0
    _speed: float = 0.0
    _target: int = LEAST
    _idle: bool = False
    _newcomer: float | None = None

    def __post_init__(self) -> None:
        self._filled = self._looked = self.clock()

    # -- charges ---------------------------------------------------------------------------

    def try_charge(self, size: int) -> bool:
        """Charge ``size`` bytes if they may pass now; whether they may."""
        if self.free:
            return True
        if self.detached and not self._fill(size):
            return True
        if self.credit < size:
            return False
        self.charge(size)
        return True

    def charge(self, size: int) -> None:
        """Charge ``size`` bytes, whether there is credit or not."""
        if not self.unlimited:
            self.credit -= size
            self._passed += size
            self._idle = False

    def add_debt(self, size: int) -> None:
        """Charge ``size`` bytes that pass without credit; the debt is bounded by :data:`MOST_DEBT`."""
        least = -max(size, int(MOST_DEBT * (self.rate or 0.0)))
        before = self.credit
        self.charge(size)
        self.credit = max(self.credit, min(before, least))

    def refund(self, size: int) -> None:
        """Return ``size`` bytes that were charged and do not pass."""
        if not self.unlimited:
            self.credit += size

    @property
    def unlimited(self) -> bool:
        """Whether no limit applies to the flow now."""
        return self.free or (self.detached and self._pace is None)

    @property
    def _pace(self) -> float | None:
        """Bytes per second while detached; None for no limit."""
        if self.rate is not None:
            return self.rate or _CRAWL
        if self.ceiling:
            return self.ceiling if self._newcomer is None else min(self.ceiling, self._newcomer)
        return self._newcomer

    def seconds_until(self, size: int) -> float:
        """Seconds until a detached account has ``size`` bytes; infinite while the agent grants its credit."""
        if not self.detached:
            return math.inf
        if not self._fill(size):
            return 0.0
        return max(0.0, (size - self.credit) / (self._pace or _CRAWL))

    # -- messages of the agent -------------------------------------------------------------------

    def bytes_to_request(self, needs: int = 0) -> int:
        """Bytes to request now, besides those requested already; 0 when the account has enough.

        :param needs: bytes that transfers wait for already
        """
        if self.free or self.detached:
            return 0
        have = self.credit + self.requested
        if not needs and 2 * have >= self._target:
            return 0  # by far the most frequent
        wanted = needs + self._ahead()
        return 0 if have >= needs and 2 * have >= wanted else wanted - have

    def grant(self, size: int, rate: float) -> None:
        """Take a grant of ``size`` bytes, or :data:`FREE` for an unlimited flow, at ``rate`` bytes per second."""
        if size == FREE:
            self.free, self.rate = True, None
            self.credit = self.requested = 0
            return
        self.free = False
        self.credit += size
        self.requested = max(0, self.requested - size)
        self.rate = max(rate, 0.0)

    def set_ceiling(self, ceiling: float) -> None:
        """Set the ceiling of the policies in bytes per second (0: none); a ceiling ends an unlimited grant."""
        self.ceiling = ceiling
        if ceiling:
            self.require_credit()

    def require_credit(self) -> None:
        """End an unlimited grant: credit must be requested again."""
        self.free = False

    def release_surplus(self) -> int:
        """Remove all credit from the account; return the number of bytes."""
        if self.free or self.detached or self.credit <= 0:
            return 0
        surplus, self.credit = self.credit, 0
        return surplus

    def release_if_idle(self) -> int:
        """As :meth:`release_surplus` if no byte has passed since the last call."""
        idle, self._idle = self._idle, True
        return self.release_surplus() if idle else 0

    # -- without the agent ---------------------------------------------------------------------

    def detach(self, newcomer: float | None = None) -> None:
        """Handle the loss of the agent: fill the account by the clock from now on.

        :param newcomer: bytes per second of a flow that never had a rate; None: unlimited
        """
        if not self.detached:
            self.detached = True
            self._filled = self.clock()
            self._newcomer = None if newcomer is None else max(newcomer, _CRAWL)

    def reattach(self, connected_anew: bool = False) -> None:
        """Handle the return of the agent: credit is requested again.

        :param connected_anew: the connection is new, so an unlimited grant of the old connection has ended
        """
        if self.detached:
            self.detached = False
            self.credit = min(self.credit, 0)
            self.requested = 0
        if connected_anew:
            self.requested = 0
            self.free = False

    def _fill(self, size: int) -> bool:
        """Fill the account up to now, as far as ``size`` needs; return False without a rate."""
        rate = self._pace
        if rate is None:
            return False
        now = self.clock()
        gained = int((now - self._filled) * rate)
        if gained > 0:
            self._filled += gained / rate
            most = max(int(rate * BURST), LEAST, size)
            if self.credit + gained > most:
                self._filled = now
            self.credit = max(self.credit, min(self.credit + gained, most))
        return True

    def _ahead(self) -> int:
        """Bytes to hold in advance: for :data:`AHEAD` seconds at the greater of measured speed and rate."""
        now = self.clock()
        passed = now - self._looked
        if passed >= _LOOK:
            speed = self._passed / passed
            self._speed = speed if passed > 5 * _LOOK else (self._speed + speed) / 2
            self._looked, self._passed = now, 0
        self._target = min(MOST, max(LEAST, int(AHEAD * max(self._speed, self.rate or 0.0))))
        return self._target
