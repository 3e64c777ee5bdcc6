"""Polls one policy from the API, and decides which uploads began while all nodes enforced it.

The poll interval is about 100 ms.  An answer describes one moment between request and answer, so
its state is certain only between two equal answers.  An upload falls under the
policy at some moment between its first byte and its answer; it is judged strictly when all the API's
answers around that interval are equal, and is *undecidable* if they are not.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: The state in one answer of the API.
IN_FORCE: Final = "in force"
NOT_IN_FORCE: Final = "not in force"
#: Set or removed, but not acknowledged by every node.
UNSETTLED: Final = "unsettled"

INSIDE: Final = "inside"
OUTSIDE: Final = "outside"
UNDECIDABLE: Final = "undecidable"
#: Seconds between two requests.
INTERVAL: Final = 0.1
Policy = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Poll:
    """One answer: ``asked`` and ``answered`` are times of one clock; ``epoch`` is that of its change."""

    asked: float
    answered: float
    says: str
    epoch: int = 0


def verdict(polls: Sequence[Poll], begin: float, end: float) -> str:
    """Whether the policy was enforced from ``begin`` to ``end``; ``polls`` are in order.

    Uses the answers from the last one before ``begin`` to the first one requested after ``end``.
    """
    first = bisect.bisect_right([poll.answered for poll in polls], begin) - 1
    last = bisect.bisect_left([poll.asked for poll in polls], end)
    if first < 0 or last >= len(polls):
        return UNDECIDABLE
    around = {(poll.says, poll.epoch) for poll in polls[first : last + 1]}
    if len(around) > 1:
        return UNDECIDABLE
    return {IN_FORCE: INSIDE, NOT_IN_FORCE: OUTSIDE}.get(around.pop()[0], UNDECIDABLE)


@dataclass(slots=True)
class Seen:
    """The state in the last answer."""

    state: str = "-"
    nodes: int = 0
    total: int = 0
    values: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


def says(policy: Policy) -> str:
    """In force, not in force, or partly, over all nodes."""
    enforced = policy["enforced"]
    if enforced["total"] < 1 or enforced["nodes"] != enforced["total"]:
        return UNSETTLED
    return IN_FORCE if policy["state"] == "active" else NOT_IN_FORCE


class Watcher:
    """Polls ``ask`` in a thread; ``polls`` are the answers, in order."""

    def __init__(self, ask: Callable[[], Policy], failures: type[Exception] | tuple[type[Exception], ...]) -> None:
        self._ask = ask
        self._failures = failures
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.polls: list[Poll] = []
        self.seen = Seen()

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Poll once more, so that all earlier moments lie between two answers, and end."""
        self._stopped.set()
        self._thread.join()
        self._poll()

    def ever(self, what: str) -> bool:
        """Whether some answer had the state ``what``."""
        return any(poll.says == what for poll in self.polls)

    def taken_back(self) -> bool:
        """Whether it was in force and no longer is."""
        return self.ever(IN_FORCE) and self.polls[-1].says == NOT_IN_FORCE

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._poll()

    def _poll(self) -> None:
        asked = time.monotonic()
        try:
            policy = self._ask()
        except self._failures as error:
            # the state of this moment is unknown
            self.polls.append(Poll(asked, time.monotonic(), UNSETTLED))
            self.seen = Seen(error=str(error))
            return
        answered = time.monotonic()
        self.polls.append(Poll(asked, answered, says(policy), policy.get("epoch") or 0))
        enforced = policy["enforced"]
        observed = policy.get("observed") or {}
        self.seen = Seen(policy["state"], enforced["nodes"], enforced["total"], observed.get("values") or {})
