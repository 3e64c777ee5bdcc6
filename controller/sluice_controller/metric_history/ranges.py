"""The time that a history is asked for, and in which steps.

A range is widened to whole steps, and ends with the last step that is over.  Without a step there is one with which
there are at most :data:`_SHOWN` points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from sluice_controller.validation.parameters import read_time
from sluice_core.errors import CallerError
from sluice_metric_history.resolutions import RESOLUTIONS, Resolution

#: Points of an answer.
MOST_POINTS: Final = 3000
#: Where the beginning of a range is not named.
DEFAULT_SECONDS: Final = 600
_SHOWN: Final = 1200
#: What is chosen from where no step is named.
_STEPS: Final = (1, 10, 60, 300, 600, 1800, 3600)
_KEPT: Final = RESOLUTIONS[-1].seconds
#: Points of a resolution go while somebody asks for them: what is older by less than this many seconds is no mistake.
_TOLERANCE: Final = 60


@dataclass(frozen=True, slots=True)
class Span:
    """Whole steps of ``step`` seconds from ``begin`` to before ``end``, unix time.

    They are made of the points of ``resolution``.
    """

    begin: int
    end: int
    step: int
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """What a query says: unix times, and the step in seconds, 0 where it is left to us."""

    begin: float
    end: float
    step: int

    def span(self, now: float, finest: int = 1) -> Span:
        """The range as it can be answered for a series that is kept in steps of ``finest`` seconds and more.

        :raises CallerError: when there are too many points, or none so fine so long ago
        """
        step = self.step or self._default_step(now, finest)
        step = math.lcm(step, finest)
        resolution = next(one for one in reversed(RESOLUTIONS) if step % one.step == 0)
        oldest = now - resolution.seconds - _TOLERANCE
        if self.begin < oldest and resolution is not RESOLUTIONS[-1]:
            coarser = RESOLUTIONS[RESOLUTIONS.index(resolution) + 1].step
            hours = f"{resolution.seconds / 3600:.3g} h"
            raise CallerError(f"`step` is `{step}`, expected a multiple of {coarser} for what is older than {hours}")
        begin = math.floor(max(self.begin, now - _KEPT) / step) * step
        end = min(math.ceil(self.end / step), math.floor(now / step)) * step
        if (end - begin) // step > MOST_POINTS:
            least = math.ceil((self.end - self.begin) / MOST_POINTS)
            raise CallerError(
                f"`step` is `{step}`, which makes more than {MOST_POINTS} points, expected {least} or more"
            )
        return Span(begin, max(begin, end), step, resolution)

    def _default_step(self, now: float, finest: int) -> int:
        for step in _STEPS:
            resolution = next(one for one in reversed(RESOLUTIONS) if step % one.step == 0)
            if step >= finest and now - self.begin <= resolution.seconds and self.end - self.begin <= step * _SHOWN:
                return step
        return _STEPS[-1]


def read_range(begin: str, end: str, step: str, now: float) -> HistoryRange:
    """What the parameters ``from``, ``to`` and ``step`` say.

    :param now: unix time, to which negative seconds are relative
    :raises CallerError: when one of them makes no sense
    """
    first = _read_moment("from", begin, now, now - DEFAULT_SECONDS)
    last = _read_moment("to", end, now, now)
    if not first < last:
        raise CallerError(f"`from` is `{begin or -DEFAULT_SECONDS}`, expected a time before `to`, `{end or 'now'}`")
    return HistoryRange(first, last, _read_step(step))


def _read_moment(name: str, text: str, now: float, default: float) -> float:
    if not text:
        return default
    if text.startswith("-") and text[1:].isascii() and text[1:].isdigit() and len(text) < 12:
        return now - int(text[1:])
    return read_time(name, text, ", or negative seconds from now on such as -3600")


def _read_step(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 7 and 1 <= int(text) <= _KEPT):
        raise CallerError(f"`step` is `{text}`, expected seconds, 1, 10, 60 or a multiple, at most {_KEPT}")
    return int(text)
