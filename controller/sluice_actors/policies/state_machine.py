"""The state machine of one policy instance: windows in, predicates in force out.

No clock and no I/O.  A window is a number (the unix second at which it began) and the residual
r(w) of the policy's condition in it: True, False or a predicate over the request.  The rules:

* The condition *counts* in w as s(w).  Without SUSTAINED, s(w) = r(w).  With it, n = ceil(duration
  / period): s(w) is the AND of r over the last n windows when none of these is False, else False.
* TRANSIENT: in force is the OR of s over the last N windows (option), so a condition that ended is
  taken back after N false windows in a row.  PERSISTENT: the OR of all s since the beginning.
* A window that was never closed (broker cut, host down) is *missing*: it counts neither as true nor as
  false.  Missing windows are left out of the last N, so absence of information takes nothing back,
  and two false windows around a gap do take it back.  A SUSTAINED count that is not complete yet starts
  again after a gap (the condition may not have held meanwhile); a complete one continues, so that one lost
  batch does not switch an action off and on.
* A number below the last one counts as a gap: the clock was set back.
  The same number again changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_actors.metrics.windows import NO_WINDOW
from sluice_core.errors import DecodeError
from sluice_core.messages.predicate import Predicate, all_of, any_of
from sluice_dsl.plan import PERSISTENT, TRANSIENT

Streak = tuple[tuple[Predicate, int], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The parameters that machines of one kind share: SUSTAINED in seconds, N, and the lives of the actions."""

    sustained: float = 0.0
    transient_windows: int = 2
    lives: frozenset[str] = frozenset({PERSISTENT})

    def needed(self, period: float) -> int:
        """The number of windows in a row for which the condition must hold to count."""
        # The small part keeps 1.1 s over 0.1 s at 11 windows.
        return max(1, math.ceil(self.sustained / period - 1e-9))


def _canonical(joined: Predicate) -> Predicate:
    """``joined`` with its parts in one order, so that equal sets of windows print alike."""
    if isinstance(joined, list) and joined[0] in ("and", "or"):
        return [joined[0], *sorted(joined[1:], key=repr)]
    return joined


def union(parts: Sequence[Predicate]) -> Predicate:
    """OR of ``parts`` that does not depend on their order."""
    if True in parts:
        return True
    if not any(parts):
        return False
    return _canonical(any_of(*parts))


def intersection(parts: Sequence[Predicate]) -> Predicate:
    """AND of ``parts`` that does not depend on their order."""
    if len(parts) == 1:
        return parts[0]
    return _canonical(all_of(*parts))


@dataclass(slots=True)
class StateMachine:
    """The state of one policy at one target; all fields are immutable values that are replaced at once.

    ``streak`` is run-length encoded: the residuals of the windows that a SUSTAINED condition has held
    so far.  ``recent`` are the last N values of s, empty when all of them are False.  ``kept`` is the
    OR of all of them (tracked only when an action is PERSISTENT).
    """

    window: int = NO_WINDOW
    streak: Streak = ()
    recent: tuple[Predicate, ...] = ()
    kept: Predicate = False

    def step(self, rules: Rules, window: int, period: float, residual: Predicate) -> bool:
        """Process one closed window; return False when the same residual again would change nothing."""
        if window == self.window:
            return True
        needed = rules.needed(period)
        held = self.streak
        gap = window < self.window or window - self.window > period * 1.5
        restarts = gap and bool(held) and sum([count for _, count in held]) < needed
        if restarts:
            held = ()
        streak: Streak = ()
        counted: Predicate = False
        if residual is not False and needed == 1:
            streak, counted = ((residual, 1),), residual
        elif residual is not False:
            streak = _extended(held, residual, needed)
            if sum([count for _, count in streak]) == needed:
                counted = intersection([one for one, _ in streak])
        recent = (*self.recent, counted)[-rules.transient_windows :]
        if TRANSIENT not in rules.lives or not any(recent):
            recent = ()
        kept = union((self.kept, counted)) if PERSISTENT in rules.lives else False
        before = (self.streak, self.recent, self.kept)
        self.window, self.streak, self.recent, self.kept = window, streak, recent, kept
        return restarts or before != (streak, recent, kept)

    def in_force(self, life: str) -> Predicate:
        """The value in force for actions of ``life``: True, False or a predicate over the request."""
        return self.kept if life == PERSISTENT else union(self.recent)

    def outputs(self) -> tuple[Predicate, Predicate]:
        """The values in force for PERSISTENT and for TRANSIENT actions, as :meth:`in_force` returns them."""
        return (self.kept, union(self.recent))

    @property
    def ending(self) -> bool:
        """True while TRANSIENT actions are in force although the last window was false."""
        return bool(self.recent) and self.recent[-1] is False

    @property
    def blank(self) -> bool:
        """True when the machine is in the state of a new one."""
        return not self.streak and not self.recent and self.kept is False

    def to_data(self) -> dict[str, Any]:
        """JSON data that ``from_data`` continues from."""
        return {
            "window": self.window,
            "streak": [[one, count] for one, count in self.streak],
            "recent": list(self.recent),
            "kept": self.kept,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> StateMachine:
        """Restore the machine from a result of ``to_data``.

        :raises DecodeError: when ``data`` is not valid
        """
        machine = cls()
        try:
            machine.window = int(data["window"])
            machine.streak = tuple((_predicate(one), int(count)) for one, count in data["streak"])
            machine.recent = tuple(_predicate(one) for one in data["recent"])
            machine.kept = _predicate(data["kept"])
        except (KeyError, TypeError, ValueError) as error:
            raise DecodeError(f"not the state of a policy's machine: `{dict(data)!r}`") from error
        return machine


def _predicate(value: Any) -> Predicate:
    if isinstance(value, bool | list):
        return value
    raise ValueError(value)


def _extended(streak: Streak, residual: Predicate, needed: int) -> Streak:
    """``streak`` with one window more, cut to the last ``needed``."""
    runs = list(streak)
    if runs and runs[-1][0] == residual:
        runs[-1] = (residual, runs[-1][1] + 1)
    else:
        runs.append((residual, 1))
    surplus = sum(count for _, count in runs) - needed
    while surplus > 0:
        first, count = runs[0]
        cut = min(count, surplus)
        surplus -= cut
        if cut == count:
            del runs[0]
        else:
            runs[0] = (first, count - cut)
    return tuple(runs)
