"""Query parameters, whose unknown names and malformed values are refused; times in parameters and in answers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from sluice_core.errors import CallerError

_EXAMPLE = "a time such as 2026-01-31T12:00:00Z"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Check that every name in ``given`` is in ``known``.

    :raises CallerError: with all unknown names, each with its near miss
    """
    names = list(known)
    faults = []
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean `{near[0]}`" if near else f"expected {_listed(names)}"
            faults.append(f"unknown {what} `{name}`, {hint}")
    if faults:
        raise CallerError("; ".join(faults))


def _listed(names: list[str]) -> str:
    return " or ".join(f"`{name}`" for name in names) if names else "none"


class Query:
    """The query string of one request, whose names must be among ``known``."""

    def __init__(self, given: Mapping[str, str], *known: str) -> None:
        refuse_unknown(given, known, "parameter")
        self._given = given

    def text(self, name: str) -> str:
        """The text of the parameter; empty if it is missing."""
        return self._given.get(name, "")

    def one_of(self, name: str, choices: Iterable[str]) -> str:
        """A word of ``choices``; empty if it is missing."""
        value = self.text(name)
        if name in self._given and value not in choices:
            raise CallerError(f"`{name}` is `{value}`, expected {', '.join(choices)}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false when it is missing."""
        value = self._given.get(name, "false")
        try:
            return _BOOLEANS[value.lower()]
        except KeyError:
            raise CallerError(f"`{name}` is `{value}`, expected true or false") from None

    def has(self, name: str) -> bool:
        """Whether it is there, empty or not."""
        return name in self._given

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number from ``low`` to ``high``."""
        value = self._given.get(name)
        if value is None:
            return default
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise CallerError(f"`{name}` is `{value}`, expected a number from {low:g} to {high:g}")
        return number

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self._given.get(name)
        if value is None:
            return default
        # int() would accept blanks, signs and underscores as well.
        if not (value.isascii() and value.isdigit() and len(value) < 10 and low <= int(value) <= high):
            raise CallerError(f"`{name}` is `{value}`, expected a whole number from {low} to {high}")
        return int(value)


def iso_time(seconds: float) -> str:
    """Unix time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_since(text: str, otherwise: str = "") -> float:
    """The time in the parameter ``since``; 0 for an empty text.

    :param otherwise: the further valid forms, for the error
    :raises CallerError: when it is not a time
    """
    return read_time("since", text, otherwise) if text else 0.0


def read_time(name: str, text: str, otherwise: str = "") -> float:
    """Unix time from ISO 8601 (without an offset it is UTC) or from seconds, in the parameter called ``name``.

    :param otherwise: the further valid forms, for the error
    :raises CallerError: when it is neither
    """
    if text.isascii() and text.isdigit() and len(text) < 12:
        return float(text)
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise CallerError(f"`{name}` is `{text}`, expected {_EXAMPLE}{otherwise}") from None
