"""Logs when floors of a policy cannot be met, and when they can again.

Rounds differ: a floor counts as short after :data:`_SHORT_SECONDS` in which it was never met, and as met again after
:data:`_MET_SECONDS` in which it was never short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.events.event_log import LogEvent
from sluice_core.messages.events import FLOOR_MET, FLOOR_SHORT

#: The source of these events, whichever host allocates.
SOURCE: Final = "bandwidth"
_SHORT_SECONDS: Final = 5.0
_MET_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Floor:
    """Seconds at which it was first and last found short; ``logged`` whether an event has said so."""

    first: float
    last: float
    logged: bool = False


@dataclass(slots=True)
class FloorWatcher:
    """Remembers the floors that are short."""

    log_event: LogEvent
    _floors: dict[str, _Floor] = field(default_factory=dict)

    def update(self, missing: Mapping[str, float], now: float) -> None:
        """Apply the outcome of a round.

        :param missing: policy → bytes per second that are missing to its floors
        :param now: seconds on a monotonic clock
        """
        for policy, rate in missing.items():
            floor = self._floors.setdefault(policy, _Floor(now, now))
            floor.last = now
            if not floor.logged and now - floor.first >= _SHORT_SECONDS:
                floor.logged = True
                self._add(FLOOR_SHORT, policy, f"{rate / 1e6:.3f} MB/s are missing to the floors of", rate)
        for policy in [name for name in self._floors if name not in missing]:
            floor = self._floors[policy]
            if not floor.logged:
                del self._floors[policy]
            elif now - floor.last >= _MET_SECONDS:
                del self._floors[policy]
                self._add(FLOOR_MET, policy, "nothing is missing any more to the floors of", 0.0)

    def _add(self, kind: str, policy: str, text: str, rate: float) -> None:
        self.log_event(kind, f"{text} policy `{policy}`", SOURCE, policy=policy, fields={"missing": rate})
