"""Asking the API for one policy, again and again, beside everything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_aio.demo.judge import IN_FORCE, NOT_IN_FORCE, UNSETTLED, Poll

#: Seconds between two questions.
INTERVAL: Final = 0.1

Policy = Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """What the last answer said."""

    state: str = "-"
    nodes: int = 0
    total: int = 0
    values: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


def says(policy: Policy) -> str:
    """In force, not in force, or somewhere between, on every node."""
    enforced = policy["enforced"]
    if enforced["total"] < 1 or enforced["nodes"] != enforced["total"]:
        return UNSETTLED
    return IN_FORCE if policy["state"] == "active" else NOT_IN_FORCE


class Watcher:
    """Polls ``ask`` in a thread; ``polls`` is what it answered, in order."""

    def __init__(self, ask: Callable[[], Policy], failures: type[Exception] | tuple[type[Exception], ...]) -> None:
        self._ask = ask
        self._failures = failures
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.polls: list[Poll] = []
        self.seen = Seen()

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask once more, so that everything before is between two answers, and end."""
        self._stopped.set()
        self._thread.join()
        self._poll()

    def ever(self, what: str) -> bool:
        """True when some answer said ``what``."""
        return any(poll.says == what for poll in self.polls)

    def taken_back(self) -> bool:
        """True when it was in force and is not any more."""
        return self.ever(IN_FORCE) and self.polls[-1].says == NOT_IN_FORCE

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._poll()

    def _poll(self) -> None:
        asked = time.monotonic()
        try:
            policy = self._ask()
        except self._failures as error:
            # nothing is known of this moment
            self.polls.append(Poll(asked, time.monotonic(), UNSETTLED))
            self.seen = Seen(error=str(error))
            return
        answered = time.monotonic()
        self.polls.append(Poll(asked, answered, says(policy), policy.get("epoch") or 0))
        enforced = policy["enforced"]
        observed = policy.get("observed") or {}
        self.seen = Seen(policy["state"], enforced["nodes"], enforced["total"], observed.get("values") or {})
