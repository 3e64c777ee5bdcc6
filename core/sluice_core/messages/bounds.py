"""Bounds of numbers that came over the wire, so that sums of them stay finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice_core.errors import DecodeError

#: Greatest measured value of one second.
MOST: Final = 1e15
#: Greatest rate that is guaranteed, configured or allocated; policies allow less.
MOST_RATE: Final = 1e20
#: Greatest running total.
MOST_TOTAL: Final = 1e18
#: A rate without a bound.
NO_BOUND: Final = -1.0

#: Field → least and most.
Bounds = Mapping[str, tuple[float, float]]


def check_number(where: str, value: Any, least: float = 0.0, most: float = MOST) -> None:
    """Check one number.

    :raises DecodeError: naming ``where``, when ``value`` is no number between the two
    """
    try:
        if least <= value <= most:
            return
    except TypeError:
        pass
    raise DecodeError(f"`{where}` is `{value!r}`, expected a number from {least:g} to {most:g}")


def check_rows(rows: Iterable[Any], bounds: Bounds) -> None:
    """Check some fields of named tuples, all of one type.

    :raises DecodeError: naming the field
    """
    places: list[tuple[int, str, float, float]] | None = None
    for row in rows:
        if places is None:
            places = [(row._fields.index(name), name, *bound) for name, bound in bounds.items()]
        for place, name, least, most in places:
            try:
                fits = least <= row[place] <= most
            except TypeError:
                fits = False
            if not fits:
                check_number(f"{type(row).__name__}.{name}", row[place], least, most)


def check_rates(where: str, rates: Any, least: float = 0.0, most: float = MOST_RATE) -> None:
    """Check all numbers in a mapping, which may hold mappings.

    :raises DecodeError: naming the field
    """
    if not isinstance(rates, Mapping):
        raise DecodeError(f"`{where}` is `{rates!r}`, expected rates by name")
    for name, rate in rates.items():
        if isinstance(rate, Mapping):
            check_rates(f"{where}.{name}", rate, least, most)
        else:
            check_number(f"{where}.{name}", rate, least, most)
