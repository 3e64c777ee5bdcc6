"""The demo's table: a line a second, on the second."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from sluice_aio.demo.watch import Seen

_COLUMNS: Final = (
    ("phase", "<10"),
    ("second", ">6"),
    ("target/s", ">8"),
    ("PUTS_SEC", ">8"),
    ("policy", "<8"),
    ("enforced", ">8"),
    ("objects", ">7"),
    ("logical x3", ">11"),
    ("on disks", ">11"),
    ("ratio", ">5"),
)


def human(size: float) -> str:
    """Bytes with a unit, as ``1.2 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line shows; bytes count every replica."""

    phase: str
    rate: float
    seen: Seen
    objects: int
    logical: int
    stored: int


class Table:
    """Keeps the seconds and aligns the columns."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._second = 0

    def wait(self) -> None:
        """Until the next second of this table."""
        if self._began is None:
            self._began = time.monotonic()
        self._second += 1
        time.sleep(max(0.0, self._began + self._second - time.monotonic()))

    @staticmethod
    def head() -> str:
        """The names of the columns."""
        return " ".join(f"{name:{width}}" for name, width in _COLUMNS)

    def row(self, line: Line) -> str:
        """One line of the table."""
        value = line.seen.values.get("PUTS_SEC")
        cells = (
            line.phase,
            str(self._second),
            f"{line.rate:g}",
            "-" if value is None else f"{value:.1f}",
            "away" if line.seen.error else line.seen.state,
            f"{line.seen.nodes}/{line.seen.total}",
            str(line.objects),
            human(line.logical),
            human(line.stored),
            f"{line.stored / line.logical:.2f}" if line.logical else "-",
        )
        return " ".join(f"{cell:{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
