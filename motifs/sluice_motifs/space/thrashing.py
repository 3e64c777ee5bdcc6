"""How many bytes a space may contract before it is busy with making the bytes again.

Theory of operation

* Items that are opened again within a *window* are the working set of a space (Denning: "The working set model for
  program behavior", CACM 11, 1968).  A target below it does not save space, it only moves bytes out and in: thrashing.
  The working set is not known beforehand, so contraction continues until its harm is measured.
* A *ghost list* keeps the names of items that were contracted within the window, as the lists B1 and B2 of ARC do
  (Megiddo, Modha: "ARC: a self-tuning, low overhead replacement cache", FAST 2003).  The open of an item in it
  is a re-expansion.  Expansions of items contracted earlier are the intended cost of elasticity, and do not count.
* *Balance*.  A share of all seconds may be lost to re-expansions.  A token bucket accumulates this share, holds at most
  that of one window (the budget), and pays the seconds of each re-expansion, with debt if necessary.  So the losses of
  a long time are bounded by the share, except for debt beyond eight budgets, which is cancelled.
* *Price*.  The cost of a contracted byte: lost seconds by contracted bytes, of all bytes contracted in one part of a
  window, a cohort, known a window later.  Older cohorts count less, half for each window.  While the cohorts of the
  present window cost more already, their price is used.
* The rule: as many bytes may be contracted as the balance pays for, minus the losses still expected from the
  present cohorts.  While there were no losses, any number may.

      allowed = (balance − max(0, price × contracted − lost)) / price

* So a first contraction is as fast as possible and may exceed the budget.  Then contraction pauses until that is
  paid for, and items that were expanded again stay: the space is larger than its target.  The next attempt contracts
  as many bytes as the budget pays for at the known price; if that costs nothing the price falls, and a window later
  more are contracted.
* Memory is bounded.  A full list keeps each second item by a hash of its name, then each fourth, …, and a found
  item counts for as many (Waldspurger and others: "Efficient MRC construction with SHARDS", FAST 2015).  It keeps all
  items again after it was empty.  A window has 32 cohorts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

_COHORTS: Final = 32
#: The factor of the figures of old cohorts at the end of a cohort.
_DECAY: Final = 0.5 ** (1 / _COHORTS)
#: The most debt in budgets; contraction pauses for as many windows at most.
_MOST_DEBT: Final = 8
#: The most ghosts: less than 200 bytes each.
CAPACITY: Final = 65_536


@dataclass(frozen=True, slots=True)
class ContractionLimit:
    """How many bytes may be contracted now, and the figures from which that follows.

    :param allowed: bytes; None for any number
    :param lost: seconds of re-expansions of items contracted within the window
    :param balance: seconds that may be lost now; negative for debt
    :param budget: seconds that may be lost in a window
    :param window: seconds
    """

    allowed: int | None
    lost: float
    balance: float
    budget: float
    window: float

    def __str__(self) -> str:
        """Why a space is larger than its target; empty when nothing limits contraction."""
        if self.allowed is None:
            return ""
        return (
            f"re-expansions of what was contracted within {self.window:g} s took {self.lost:.1f} s, "
            f"{self.balance:.1f} s of a budget of {self.budget:.1f} s are left: "
            f"{self.allowed} bytes more may be contracted"
        )


class GhostList:
    """Names of items that were contracted within a window, by hash.

    :param window: seconds
    :param capacity: most that are kept
    """

    def __init__(self, window: float, capacity: int = CAPACITY) -> None:
        self._window = window
        self._capacity = capacity
        self._mask = 0
        # not a dict, whose search for its first key passes all keys removed before it
        self._times: OrderedDict[int, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._times)

    def put(self, item: str, now: float) -> None:
        """Add a contracted item."""
        self._forget(now)
        name = _hash(item)
        if name & self._mask:
            return
        self._times[name] = now
        self._times.move_to_end(name)
        while len(self._times) > self._capacity:
            self._mask = 2 * self._mask + 1
            self._times = OrderedDict((name, at) for name, at in self._times.items() if not name & self._mask)

    def pop(self, item: str, now: float) -> tuple[int, float]:
        """Remove an item that was opened.

        :returns: the number of items that it counts for, 0 when it was not contracted within the window; when it was
            contracted
        """
        self._forget(now)
        at = self._times.pop(_hash(item), None)
        return (0, now) if at is None else (self._mask + 1, at)

    def _forget(self, now: float) -> None:
        while self._times:
            if now - self._times[next(iter(self._times))] <= self._window:
                return
            self._times.popitem(last=False)
        self._mask = 0


@dataclass(slots=True)
class _Cohort:
    """Bytes that were contracted in one part of a window, and the seconds of their re-expansions since."""

    contracted: float = 0
    lost: float = 0.0

    @property
    def price(self) -> float:
        """Seconds for each byte."""
        return self.lost / self.contracted if self.contracted else 0.0


class ThrashingGuard:
    """Bounds re-expansions of one space; times are seconds of one monotonic clock.

    :param window: seconds
    :param share: of all seconds, that may be lost to re-expansions; 0.01 is a hundredth, infinity means no limit
    :param now: the time of its start
    :raises ValueError: when window or share are not above 0
    """

    def __init__(self, window: float, share: float, now: float, capacity: int = CAPACITY) -> None:
        if window <= 0 or share <= 0:
            raise ValueError(f"window `{window:g}` s and share `{share:g}` were given, expected both above 0")
        self._window = window
        self._share = share
        self._bounded = math.isfinite(share)
        self._budget = self._balance = window * share
        self._filled = now
        self._ghosts = GhostList(window, capacity)
        self._number = self._number_at(now)
        self._cohorts: dict[int, _Cohort] = {}
        self._old = _Cohort()

    def contracted(self, item: str, size: int, now: float) -> None:
        """Count ``size`` contracted bytes of an item."""
        if not self._bounded:
            return
        self._advance(now)
        self._ghosts.put(item, now)
        self._cohorts.setdefault(self._number, _Cohort()).contracted += size

    def expanded(self, item: str, seconds: float, now: float) -> None:
        """Count an expansion that a reader waited for this long; refills do not count."""
        if not self._bounded:
            return
        self._advance(now)
        items, at = self._ghosts.pop(item, now)
        lost = items * seconds
        if lost:
            self._balance = max(self._balance - lost, -_MOST_DEBT * self._budget)
            self._cohorts.get(self._number_at(at), self._old).lost += lost

    def limit(self, now: float) -> ContractionLimit:
        """The bytes that may be contracted from now on."""
        if not self._bounded:
            return ContractionLimit(None, 0.0, self._balance, self._budget, self._window)
        self._advance(now)
        contracted = sum(cohort.contracted for cohort in self._cohorts.values())
        lost = sum(cohort.lost for cohort in self._cohorts.values())
        price = max(_Cohort(contracted, lost).price, self._old.price)
        allowed = None
        if price:
            left = self._balance - max(0.0, price * contracted - lost)
            allowed = max(0, math.ceil(left / price))
        return ContractionLimit(allowed, lost, self._balance, self._budget, self._window)

    def _advance(self, now: float) -> None:
        """Fill the balance, and add the figures of cohorts that are older than the window to the old ones."""
        self._balance = min(self._balance + (now - self._filled) * self._share, self._budget)
        self._filled = now
        number = self._number_at(now)
        decay = _DECAY ** (number - self._number)
        self._number = number
        self._old.contracted *= decay
        self._old.lost *= decay
        for over in [one for one in self._cohorts if one < number - _COHORTS]:
            cohort = self._cohorts.pop(over)
            self._old.contracted += cohort.contracted
            self._old.lost += cohort.lost

    def _number_at(self, now: float) -> int:
        return math.floor(now * _COHORTS / self._window)


def _hash(item: str) -> int:
    return int.from_bytes(blake2b(item.encode(), digest_size=8).digest())
