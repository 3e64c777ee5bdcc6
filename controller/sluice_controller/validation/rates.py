"""Rates in fields of bodies."""

from __future__ import annotations

from sluice_core.errors import CallerError
from sluice_core.messages.base import MOST_RATE
from sluice_dsl.checks.bandwidth_checks import BARE_RATE
from sluice_dsl.syntax.units import UnitError, read_quantity


def read_rate(name: str, text: str) -> float:
    """Bytes per second in the field ``name``: a number with its unit, or in MB/s without.

    :raises CallerError: when it is none, or less than a byte per second
    """
    try:
        rate = read_quantity(text, "rate", BARE_RATE)
    except UnitError as error:
        near = f", did you mean `{error.near_miss}`" if error.near_miss else ""
        raise CallerError(f"`{name}`: {error}{near}") from error
    if not 1 <= rate <= MOST_RATE:
        raise CallerError(f"`{name}` is `{text}`, expected at least 1 B/s")
    return float(rate)
