"""Tables for people: aligned columns, nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """``rows`` under ``titles``, each column as wide as its widest cell."""
    cells = [list(titles), *([plain(str(cell)) for cell in row] for row in rows)]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(row, widths) for row in cells)


def pairs(items: Iterable[tuple[str, object]]) -> str:
    """Names and values below each other."""
    rows = [(name, plain(str(value))) for name, value in items]
    longest = max((width(name) for name, _ in rows), default=0)
    return "\n".join(_line(row, (longest, 0)) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell + " " * (room - width(cell)) for cell, room in zip(row, widths, strict=True)).rstrip()


def plain(text: str) -> str:
    """``text`` on one line and without control characters, which a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def width(text: str) -> int:
    """Columns that ``text`` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )
