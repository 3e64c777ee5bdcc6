"""Values with their units, for people."""

from __future__ import annotations

from typing import Final

#: Units of the API → their signs; what is missing has none.
_UNITS: Final = {"bytes_per_second": "B/s", "bytes": "B", "seconds": "s", "per_second": "/s"}
_PREFIXES: Final = ("", "k", "M", "G", "T", "P")


def rate(value: float | None) -> str:
    """Bytes per second, as ``12.3 MB/s``; a dash where nothing is known."""
    return "–" if value is None else f"{_scaled(value)}B/s"


def size(value: float | None) -> str:
    """Bytes, as ``12.3 GB``; a dash where nothing is known."""
    return "–" if value is None else f"{_scaled(value)}B"


def quantity(value: float | None, unit: str) -> str:
    """A value in a unit of the API, as ``12.3 MB/s`` for ``bytes_per_second``; a dash where nothing is known."""
    if value is None:
        return "–"
    return f"{_scaled(value)}{_UNITS.get(unit, '')}".rstrip()


def _scaled(value: float) -> str:
    power = 0
    while abs(value) >= 1000 and power < len(_PREFIXES) - 1:
        value /= 1000
        power += 1
    return f"{value:.3g} {_PREFIXES[power]}"
