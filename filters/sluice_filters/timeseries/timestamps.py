"""Times as they stand in CSV: a number since 1970, or ISO 8601; whole microseconds inside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from sluice_filters.csv.language import parse_number

#: Microseconds of what a plain number counts.
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: Numbers beyond are no times (the year 9999).
_LATEST: Final = 253_402_300_800 * 1_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are written; ``zone`` None: a number; ``naive``: without a zone, taken for UTC."""

    unit: int
    zone: tzinfo | None = None
    naive: bool = False
    separator: str = "T"
    zulu: bool = False

    def format(self, micros: int) -> bytes:
        """``micros`` as the object writes its times, with a fraction only where there is one."""
        if self.zone is None:
            whole, rest = divmod(micros, self.unit)
            digits = len(str(self.unit)) - 1
            return (f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)).encode()
        moment = (_EPOCH + timedelta(microseconds=micros)).astimezone(self.zone)
        text = (moment.replace(tzinfo=None) if self.naive else moment).isoformat(self.separator)
        return (text.removesuffix("+00:00") + "Z" if self.zulu else text).encode()


def read_time(value: bytes, unit: int) -> tuple[int, Clock] | None:
    """Microseconds since 1970 and the way they were written; None when it is no time.

    :param unit: microseconds of what a plain number counts
    """
    number = parse_number(value)
    if number is not None:
        micros = number * unit
        if not abs(micros) < _LATEST:
            return None
        return round(micros), Clock(unit)
    try:
        text = value.decode("ascii")
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    naive = moment.tzinfo is None
    zone = moment.tzinfo or UTC
    separator = " " if " " in text else "T"
    aware = moment.replace(tzinfo=zone)
    try:
        return (aware - _EPOCH) // _MICROSECOND, Clock(unit, zone, naive, separator, text.endswith("Z"))
    except OverflowError:
        return None


def format_number(number: float, digits: int) -> bytes:
    """Rounded to ``digits`` behind the point, without zeros at the end."""
    text = f"{number:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text in ("-0", "") else text.encode()
