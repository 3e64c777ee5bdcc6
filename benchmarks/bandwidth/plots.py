"""Bandwidth over time: a line for each tenant, a dashed one for its floor, a dotted one for its expected rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.harness.plots import STYLES, drawn, legend, line, mark

#: Prefix of an account before the tenant's name.
_PREFIX: Final = "AUTH_"


@dataclass(frozen=True, slots=True)
class Course:
    """The rates of tenants, with reference lines; all rates are bytes per second, all times unix seconds.

    ``floors`` of nobody who is in ``rates`` is that of all.  ``expected`` is what each should get with its part of
    what is spare.  ``marks`` says what happened when.
    """

    title: str
    rates: Mapping[str, Mapping[int, float]]
    floors: Mapping[str, float]
    expected: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[float, str] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The course that :meth:`to_data` encoded."""
        rates = {name: {int(at): rate for at, rate in one.items()} for name, one in data["rates"].items()}
        marks = {float(at): text for at, text in data["marks"].items()}
        return cls(data["title"], rates, data["floors"], data["expected"], marks)

    def to_data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "title": self.title,
            "floors": dict(self.floors),
            "expected": dict(self.expected),
            "marks": {str(at): text for at, text in self.marks.items()},
            "rates": {name: {str(at): rate for at, rate in one.items()} for name, one in self.rates.items()},
        }


def paint(file: Path, course: Course) -> None:
    """Write a PNG."""
    with drawn(file, course.title) as (axes,):
        begin = min((min(one) for one in course.rates.values() if one), default=0)
        for number, (name, one) in enumerate(course.rates.items()):
            seconds = sorted(one)
            label = name.removeprefix(_PREFIX)
            line(axes, number, [at - begin for at in seconds], [one[at] / 1e6 for at in seconds], label)
            colour = STYLES[number % len(STYLES)].colour
            if name in course.floors:
                _level(axes, course.floors[name], colour, "--", f"{label}: floor")
            if name in course.expected:
                _level(axes, course.expected[name], colour, ":", f"{label}: expected")
        for name, value in course.floors.items():
            if name not in course.rates:
                _level(axes, value, "black", "--", name)
        mark(axes, {at - begin: text for at, text in course.marks.items()})
        axes.set(xlabel="time, s", ylabel="MB/s in each second", ylim=(0, None))
        axes.grid(alpha=0.3)
        legend(axes)


def _level(axes: Any, rate: float, colour: str, style: str, label: str) -> None:
    axes.axhline(rate / 1e6, color=colour, linestyle=style, linewidth=1.2, label=f"{label} {rate / 1e6:.3g} MB/s")
