"""Values with units: read into base units by type, and printed back.

Sizes are bytes (int), rates bytes per second (float), durations seconds (float), percents a
fraction (float), ratios plain numbers.  A value without a unit is in base units, unless the caller gives another one
(bandwidth is in MB/s).  Units are case-sensitive: the B
is a capital, since ``Mb`` and ``mbps`` mean bits elsewhere, and ``5m`` are minutes, never mega.

A ratio is the original size divided by the new size.  It may also be written as the share that is
saved: ``50%`` is 2, ``75%`` is 4.  Both grow together, so every comparison means the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from sluice_core.describe import Parameter, Scalar
from sluice_dsl.diagnostics import UnknownWord

_DECIMAL: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PREFIXES: Final = {**_DECIMAL, **_BINARY}

Units = Mapping[str, Fraction]


def _units(table: Mapping[str, int]) -> Units:
    return {name: Fraction(factor) for name, factor in table.items()}


SIZES: Final = _units(_PREFIXES | {f"{prefix}B": factor for prefix, factor in _PREFIXES.items()})
RATES: Final = _units(
    {"": 1} | {f"{prefix}B{per}": factor for prefix, factor in _PREFIXES.items() for per in ("ps", "/s", "/sec")}
)
COUNTS: Final = _units(_DECIMAL)
FREQUENCIES: Final = _units({f"{prefix}{per}": factor for prefix, factor in _DECIMAL.items() for per in ("", "/s")})
PERCENTS: Final[Units] = {"": Fraction(1), "%": Fraction(1, 100)}
DURATIONS: Final[Units] = {
    "": Fraction(1), "ms": Fraction(1, 1000), "s": Fraction(1), "sec": Fraction(1),
    "m": Fraction(60), "min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400),
}  # fmt: skip

#: Quantity → its units and an example for messages; ``float`` and ``int`` know no unit.
QUANTITIES: Final[Mapping[str, tuple[Units, str]]] = {
    "size": (SIZES, "a size such as 512, 64KiB or 10MB"),
    "rate": (RATES, "a rate such as 30MBps or 1MiB/s"),
    "duration": (DURATIONS, "a duration such as 500ms, 30s, 5min or 2h"),
    "percent": (PERCENTS, "a percentage such as 20% or a fraction such as 0.2"),
    "count": (COUNTS, "a number such as 10 or 3k"),
    "frequency": (FREQUENCIES, "a number per second such as 3 or 3/s"),
    "int": ({"": Fraction(1)}, "a whole number"),
    "ratio": ({"": Fraction(1)}, "a ratio such as 2, or the share saved such as 50%"),
    "float": ({"": Fraction(1)}, "a number"),
}

#: Unit of a metric → quantity that it is compared with.
METRIC_QUANTITIES: Final = {
    "count": "count",
    "per_second": "frequency",
    "bytes": "size",
    "bytes_per_second": "rate",
    "seconds": "duration",
    "fraction": "percent",
    "ratio": "ratio",
}

#: All units, so that the grammar can allow a blank between number and unit.
ALL_UNITS: Final = tuple(sorted({unit for units, _ in QUANTITIES.values() for unit in units if unit}, key=len))[::-1]

_NUMBER: Final = r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"
_quantity = re.compile(rf"({_NUMBER})\s*(\D\S*)?")
_WHOLE: Final = ("size", "int")
#: Quantities that are shown with a blank before the unit, and the units of rates that are rounded.
_SPACED: Final = ("size", "rate", "duration")
_ROUNDED: Final = {"T": 10**12, "G": 10**9, "M": 10**6, "K": 10**3}
_SIGNED: Final = ("int", "float")
_LARGEST: Final = 2**63 - 1
_TRUTH: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)


class UnitError(ValueError):
    """A value that is not of the expected type; ``unknown`` is the word or unit in it that is not known."""

    def __init__(self, message: str, unknown: UnknownWord | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown

    @property
    def near_miss(self) -> str:
        """The probable spelling of the value, or an empty string."""
        return self.unknown.near_miss if self.unknown else ""


@dataclass(frozen=True)
class _UnknownUnit(UnknownWord):
    """The unit of ``number``, which is near a unit that differs in case, or begins alike."""

    number: str = ""

    @cached_property
    def near_miss(self) -> str:
        if not self.word:
            return ""
        named = sorted(filter(None, self.known), key=len)
        alike = [unit for unit in named if unit.casefold() == self.word.casefold()]
        longer = [unit for unit in named if unit.startswith(self.word)]
        shorter = [unit for unit in reversed(named) if self.word.startswith(unit)]
        near = [*alike, *longer, *shorter]
        return f"{self.number}{near[0]}" if near else ""


class TooLargeError(UnitError):
    """A value beyond the greatest number that is supported."""


def has_no_unit(text: str) -> bool:
    """Whether ``text`` is a number without a unit."""
    match = _quantity.fullmatch(text.strip())
    return match is not None and not match[2]


def read_quantity(text: str, quantity: str, bare: str = "") -> int | float:
    """Return ``text`` in the base unit of ``quantity``, one of :data:`QUANTITIES`; ``bare`` is the default unit.

    :raises UnitError: when it is not such a quantity
    """
    units, example = QUANTITIES[quantity]
    match = _quantity.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"expected {example}, got `{text}`")
    number, unit = match[1], match[2] or bare
    if quantity == "ratio" and unit == "%":
        return _ratio(text, Fraction(number) / 100)
    if unit not in units:
        raise UnitError(f"expected {example}, got `{text}`", _UnknownUnit(unit, units, number=number))
    exact = Fraction(number) * units[unit]
    if exact < 0 and quantity not in _SIGNED:
        raise UnitError(f"expected {example}, got the negative `{text}`")
    if abs(exact) > _LARGEST:
        raise TooLargeError(f"`{text}` is too large")
    if quantity not in _WHOLE:
        return float(exact)
    if exact.denominator > 1 and units[unit] == 1:
        raise UnitError(f"expected {example}, got `{text}`, which is not whole")
    return round(exact)


def _ratio(text: str, saved: Fraction) -> float:
    """Return the ratio that saves a share."""
    if not 0 <= saved < 1:
        raise UnitError(f"expected a share saved from 0% to below 100%, got `{text}`")
    if saved > 1 - Fraction(1, _LARGEST):
        raise UnitError(f"`{text}` is too large")
    return float(1 / (1 - saved))


def read_value(text: str, kind: str, bare: str = "") -> Scalar:
    """Return ``text`` as a value of parameter type ``kind``.

    :raises UnitError: when it is not one
    """
    reader = _READERS.get(kind)
    return reader(text) if reader else read_quantity(text, kind, bare)


def _read_truth(text: str) -> Scalar:
    if text.lower() not in _TRUTH:
        raise UnitError(f"expected true or false, got `{text}`")
    return _TRUTH[text.lower()]


def _read_list(text: str) -> Scalar:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UnitError(f"expected words separated by commas, got `{text}`")
    return ",".join(parts)


_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "str": str,
    "bool": _read_truth,
    "list": _read_list,
}


def read_parameter(text: str, parameter: Parameter, bare_rate: str = "") -> Scalar:
    """Return ``text`` as a value of ``parameter``, choices and range included; ``bare_rate`` is the default unit of a
    rate.

    :raises UnitError: when it is not one
    """
    try:
        value = read_value(text, parameter.type, bare_rate if parameter.type == "rate" else "")
    except TooLargeError as error:
        if parameter.maximum is None:
            raise
        raise UnitError(f"expected {_range(parameter)}, got `{text}`") from error
    if parameter.choices:
        return _chosen(value, parameter.choices)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = parameter.minimum, parameter.maximum
        if (low is not None and value < low) or (high is not None and value > high):
            raise UnitError(f"expected {_range(parameter)}, got `{text}`")
    return value


def _chosen(value: Scalar, choices: tuple[Scalar, ...]) -> Scalar:
    folded = {str(choice).casefold(): choice for choice in choices}
    chosen = folded.get(str(value).casefold())
    if chosen is None:
        names = ", ".join(map(str, choices))
        raise UnitError(f"expected one of {names}, got `{value}`", UnknownWord(str(value), tuple(map(str, choices))))
    return chosen


def _range(parameter: Parameter) -> str:
    low, high = (
        None if bound is None else format_value(bound, parameter.type)
        for bound in (parameter.minimum, parameter.maximum)
    )
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if high is None else f"at most {high}"


def format_value(value: Scalar, kind: str) -> str:
    """Return ``value``, in base units, for display: ``30 MB/s``, ``64 KiB``, ``5 min``, ``20%``.

    A sentence may contain it in this form, too.  A rate that is not a short number in any unit is rounded to three
    decimals; all other values are exact.
    """
    written = write_value(value, kind)
    if kind not in _SPACED or isinstance(value, str | bool):
        return written
    match = _quantity.fullmatch(written)
    number, unit = (match[1], match[2]) if match else (written, "")
    if kind == "rate":
        unit = unit.removesuffix("ps") + "/s"
        if unit == "B/s" and abs(value) >= 1000:
            prefix, factor = next((name, size) for name, size in _ROUNDED.items() if abs(value) >= size)
            number, unit = _plain(round(value / factor, 3)), f"{prefix}B/s"
    return f"{number} {unit}"


def write_value(value: Scalar, kind: str) -> str:
    """Return ``value``, in base units, in one word for a sentence: ``30MBps``; it parses to the same value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if kind == "percent":
        return _write(value, {"%": Fraction(1, 100)}, "")
    if kind == "duration":
        return _write(value, {name: DURATIONS[name] for name in ("d", "h", "min", "s", "ms")}, "s")
    if kind in ("size", "rate"):
        suffix = "B" if kind == "size" else "Bps"
        table = {name + suffix: Fraction(factor) for name, factor in _PREFIXES.items() if name not in ("", "k")}
        return _write(value, dict(sorted(table.items(), key=lambda item: -item[1])), suffix)
    return _plain(value) + ("/s" if kind == "frequency" else "")


def _write(value: int | float, table: Units, base: str) -> str:
    exact = Fraction(value)
    for unit, factor in table.items():
        count = exact / factor
        if count >= 1 and count.denominator == 1:
            return f"{count}{unit}"
        written = repr(float(count))
        if 1 <= count < 1000 and len(written) <= 6 and float(Fraction(written) * factor) == value:
            return f"{written.removesuffix('.0')}{unit}"
    return _plain(value) + base


def _plain(value: int | float) -> str:
    return str(value) if isinstance(value, int) else repr(value).removesuffix(".0")
