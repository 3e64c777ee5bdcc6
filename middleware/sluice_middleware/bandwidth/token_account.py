"""What one flow holds of the credit of its node, in one worker: pure, on a clock that is given.

Credit is bytes that may pass.  It is asked for in advance, enough for some tenths of a second, and again when half
of that is gone.  What passes is taken off first, so that the bytes which passed are never more than those which were
given; :meth:`TokenAccount.charge` and :meth:`TokenAccount.add_debt` alone make debt, which is paid back before anything
else passes.

While the agent is away the account fills itself at the last rate that it was told, and is not emptier or fuller
for it afterwards.  A flow that no rate was ever told of goes at the rate that newcomers were given, or passes freely
where there was none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import FREE

#: Asked for at least, bytes.
LEAST: Final = 64 * 1024
#: And at most, beyond what transfers wait for.
MOST: Final = 8 * 1024 * 1024
#: Seconds of its rate that an account holds or has asked for.
AHEAD: Final = 0.1
#: Seconds of its rate that an account alone fills up to.
BURST: Final = 0.25
#: Bytes per second of an account alone whose rate was 0, and at least of a newcomer: nothing stands still for ever.
_CRAWL: Final = 64 * 1024
#: Seconds of its rate that an account owes at most for what passed unpaid, or one piece when that is more.
MOST_DEBT: Final = 1.0
#: Seconds between two looks at how fast bytes pass.
_LOOK: Final = 0.1


class TokenAccount:
    """Credit of ``flow``; ``asked`` bytes are under way, ``free`` says that none is needed for now."""

    __slots__ = (
        "_clock",
        "_filled",
        "_idle",
        "_looked",
        "_newcomer",
        "_passed",
        "_speed",
        "_target",
        "ceiling",
        "credit",
        "detached",
        "flow",
        "free",
        "rate",
        "requested",
    )

    def __init__(self, flow: Flow, clock: Callable[[], float] = time.monotonic) -> None:
        self.flow = flow
        self.free = False
        #: The agent is away.
        self.detached = False
        #: Bytes per second to go on with alone; None when never told, or free when last told.
        self.rate: float | None = None
        #: Bytes that may pass now; negative while there is debt.
        self.credit = 0
        self.requested = 0
        #: Bytes per second that policies bound it to, over the whole cluster, as far as is known here; 0: none.
        self.ceiling = 0.0
        self._clock = clock
        self._filled = self._looked = clock()
        self._passed = 0
        self._speed = 0.0
        self._target = LEAST
        self._idle = False
        self._newcomer: float | None = None

    # -- what passes ---------------------------------------------------------------------------

    def try_charge(self, size: int) -> bool:
        """Whether ``size`` bytes may pass now; they are taken off then."""
        if self.free:
            return True
        if self.detached and not self._fill(size):
            return True
        if self.credit < size:
            return False
        self.charge(size)
        return True

    def charge(self, size: int) -> None:
        """``size`` bytes have passed or will, whether there is credit or not."""
        if not self.unlimited:
            self.credit -= size
            self._passed += size
            self._idle = False

    def add_debt(self, size: int) -> None:
        """``size`` bytes pass though there is no credit: debt, which is bounded."""
        least = -max(size, int(MOST_DEBT * (self.rate or 0.0)))
        before = self.credit
        self.charge(size)
        self.credit = max(self.credit, min(before, least))

    def refund(self, size: int) -> None:
        """``size`` bytes that were taken do not pass."""
        if not self.unlimited:
            self.credit += size

    @property
    def unlimited(self) -> bool:
        """Nothing holds it back now."""
        return self.free or (self.detached and self._pace is None)

    @property
    def _pace(self) -> float | None:
        """Bytes per second while alone; None for no bound."""
        if self.rate is not None:
            return self.rate or _CRAWL
        if self.ceiling:
            return self.ceiling if self._newcomer is None else min(self.ceiling, self._newcomer)
        return self._newcomer

    def seconds_until(self, size: int) -> float:
        """How long an account alone must wait for ``size`` bytes; for ever when others fill it."""
        if not self.detached:
            return math.inf
        if not self._fill(size):
            return 0.0
        return max(0.0, (size - self.credit) / (self._pace or _CRAWL))

    # -- what the agent says -------------------------------------------------------------------

    def bytes_to_request(self, needs: int = 0) -> int:
        """Bytes to ask for now, beside those under way; 0 when there is enough.

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
        """The agent gave ``size`` bytes, or said that the flow is free."""
        if size == FREE:
            self.free, self.rate = True, None
            self.credit = self.requested = 0
            return
        self.free = False
        self.credit += size
        self.requested = max(0, self.requested - size)
        self.rate = max(rate, 0.0)

    def set_ceiling(self, ceiling: float) -> None:
        """Policies bound it to ``ceiling`` now (0: no more); who was free of another one asks again."""
        self.ceiling = ceiling
        if ceiling:
            self.require_credit()

    def require_credit(self) -> None:
        """That the flow is free holds no longer."""
        self.free = False

    def release_surplus(self) -> int:
        """Bytes that nobody needs now; they are taken off."""
        if self.free or self.detached or self.credit <= 0:
            return 0
        surplus, self.credit = self.credit, 0
        return surplus

    def release_if_idle(self) -> int:
        """As :meth:`give_back` when nothing has passed since the last call."""
        idle, self._idle = self._idle, True
        return self.release_surplus() if idle else 0

    # -- without the agent ---------------------------------------------------------------------

    def detach(self, newcomer: float | None = None) -> None:
        """The agent is away: fill yourself from now on.

        :param newcomer: the rate of a flow that no rate was told of; None: it passes freely
        """
        if not self.detached:
            self.detached = True
            self._filled = self._clock()
            self._newcomer = None if newcomer is None else max(newcomer, _CRAWL)

    def reattach(self, connected_anew: bool = False) -> None:
        """The agent is back: what is needed is asked for again.

        :param connected_anew: and what was said before to be free may not be any more
        """
        if self.detached:
            self.detached = False
            self.credit = min(self.credit, 0)
            self.requested = 0
        if connected_anew:
            self.requested = 0
            self.free = False

    def _fill(self, size: int) -> bool:
        """Fill up to now, far enough for ``size``; False when there is no rate to keep."""
        rate = self._pace
        if rate is None:
            return False
        now = self._clock()
        gained = int((now - self._filled) * rate)
        if gained > 0:
            self._filled += gained / rate
            most = max(int(rate * BURST), LEAST, size)
            if self.credit + gained > most:
                self._filled = now
            self.credit = max(self.credit, min(self.credit + gained, most))
        return True

    def _ahead(self) -> int:
        """Bytes to hold in advance, as fast as they pass or may pass."""
        now = self._clock()
        passed = now - self._looked
        if passed >= _LOOK:
            speed = self._passed / passed
            self._speed = speed if passed > 5 * _LOOK else (self._speed + speed) / 2
            self._looked, self._passed = now, 0
        self._target = min(MOST, max(LEAST, int(AHEAD * max(self._speed, self.rate or 0.0))))
        return self._target
