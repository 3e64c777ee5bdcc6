"""The results of a benchmark: figures with a target, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from sluice_core.errors import PeerError

_HEADS: Final = ("name", "what", "measured", "target", "reached", "beside it")


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: ``measured`` and ``target`` as people read them, ``value`` as machines do.

    ``reached`` is None for what is only reported.  ``beside`` is what the figure must be read with (the
    spread of two plain instances, what limits it); ``details`` goes into the JSON alone, and so do ``part``, whose row
    it is, and ``run``, when that was measured (:mod:`benchmarks.harness.results`).
    """

    name: str
    what: str
    value: float
    measured: str
    target: str = ""
    reached: bool | None = None
    beside: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""
    run: str = ""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The figure that :meth:`to_data` encoded."""
        return cls(**data)

    def to_data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """The row, in the order of the table's columns."""
        reached = "-" if self.reached is None else "yes" if self.reached else "NO"
        return (self.name, self.what, self.measured, self.target, reached, self.beside)


class Partly(PeerError):
    """A part could not measure all of its rows; ``figures`` are the measured ones."""

    def __init__(self, reason: str, figures: Sequence[Figure]) -> None:
        super().__init__(reason)
        self.figures = figures


def at_most(
    name: str, what: str, value: float, limit: float, unit: str = "", beside: str = "", digits: int = 3, **details: Any
) -> Figure:
    """A figure with the upper ``limit``."""
    suffix = f" {unit}" if unit else ""
    return Figure(
        name, what, value, f"{value:.{digits}f}{suffix}", f"≤ {limit:g}{suffix}", value <= limit, beside, details
    )


def at_least(
    name: str, what: str, value: float, limit: float, unit: str = "", beside: str = "", digits: int = 3, **details: Any
) -> Figure:
    """A figure with the lower ``limit``."""
    suffix = f" {unit}" if unit else ""
    return Figure(
        name, what, value, f"{value:.{digits}f}{suffix}", f"≥ {limit:g}{suffix}", value >= limit, beside, details
    )


def reported(
    name: str, what: str, value: float, unit: str = "", beside: str = "", digits: int = 3, **details: Any
) -> Figure:
    """A figure without a target."""
    suffix = f" {unit}" if unit else ""
    return Figure(name, what, value, f"{value:.{digits}f}{suffix}", beside=beside, details=details)


def table(figures: Iterable[Figure]) -> str:
    """Aligned columns for a terminal."""
    rows = [_HEADS, *(one.cells() for one in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
