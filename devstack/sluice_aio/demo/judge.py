"""Which uploads began while a policy was enforced everywhere, judged from outside.

The API is asked every 100 ms or so.  An answer speaks of one moment between question and answer, so
what it says is known to hold only between two answers that say the same.  An upload falls under the
policy at some moment between its first byte and its answer; it is judged strictly when all the API's
answers around that interval agree, and is *undecidable* when they do not.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: What one answer of the API says.
IN_FORCE: Final = "in force"
NOT_IN_FORCE: Final = "not in force"
#: Set or taken back already, but not acknowledged by every node.
UNSETTLED: Final = "unsettled"

INSIDE: Final = "inside"
OUTSIDE: Final = "outside"
UNDECIDABLE: Final = "undecidable"


@dataclass(frozen=True, slots=True)
class Poll:
    """One answer: asked and answered are times of one clock; ``epoch`` is the change it speaks of."""

    asked: float
    answered: float
    says: str
    epoch: int = 0


def verdict(polls: Sequence[Poll], begin: float, end: float) -> str:
    """Whether the policy was enforced from ``begin`` to ``end``; ``polls`` are in order.

    From the last answer that came before ``begin`` to the first that was asked for after ``end``.
    """
    first = bisect.bisect_right([poll.answered for poll in polls], begin) - 1
    last = bisect.bisect_left([poll.asked for poll in polls], end)
    if first < 0 or last >= len(polls):
        return UNDECIDABLE
    around = {(poll.says, poll.epoch) for poll in polls[first : last + 1]}
    if len(around) > 1:
        return UNDECIDABLE
    return {IN_FORCE: INSIDE, NOT_IN_FORCE: OUTSIDE}.get(around.pop()[0], UNDECIDABLE)
