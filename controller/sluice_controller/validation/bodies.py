"""JSON request bodies, read field by field; each fault is a :class:`CallerError` that names the field."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.describe import Scalar
from sluice_core.errors import CallerError
from sluice_core.messages.base import MOST_RATE
from sluice_dsl.checks.bandwidth_checks import BARE_RATE
from sluice_dsl.syntax.units import UnitError, read_quantity

#: Longest text of a field, in characters, unless a field says otherwise.
LONGEST: Final = 1024
#: For texts whose length only the size of the body limits.
ANY_LENGTH: Final = sys.maxsize
#: The maximum number of members of a list.
MOST: Final = 10_000


class Body:
    """An object with no other fields than ``known``.

    :raises CallerError: when it is not an object or has another field; every method raises it for a wrong type
    """

    def __init__(self, data: Any, *known: str) -> None:
        if not isinstance(data, Mapping):
            raise CallerError("the body is no object, expected " + (", ".join(f"`{one}`" for one in known) or "none"))
        refuse_unknown(data, known, "field")
        self._data = data

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._data

    def text(self, name: str, default: str | None = None, longest: int = LONGEST) -> str:
        """A text; without ``default`` it must be there and not empty."""
        if name not in self._data:
            if default is None:
                raise CallerError(f"`{name}` is missing, expected a text")
            return default
        value = plain_text(self._data[name], name, longest)
        if default is None and not value.strip():
            raise CallerError(f"`{name}` is empty, expected a text")
        return value

    def one_of(self, name: str, choices: Iterable[str], default: str | None = None) -> str:
        """One of some words."""
        value = self.text(name, default)
        if value not in choices:
            raise CallerError(f"`{name}` is `{value}`, expected {', '.join(choices)}")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts that are not empty."""
        value = self._data.get(name, default)
        if not isinstance(value, list | tuple):
            raise CallerError(f"`{name}` is not a list, expected a list of texts")
        if len(value) > MOST:
            raise CallerError(f"`{name}` has {len(value)} members, expected at most {MOST}")
        values = tuple(plain_text(one, f"{name}[{number}]", LONGEST) for number, one in enumerate(value))
        if not all(one.strip() for one in values):
            raise CallerError(f"`{name}` contains an empty text")
        return values

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number from ``low`` to ``high``."""
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise CallerError(f"`{name}` is `{shortened(value)}`, expected a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int, what: str = "a whole number") -> int:
        """A whole number from ``low`` to ``high``, which must be there; ``what`` describes it in errors."""
        value = self._data.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise CallerError(f"`{name}` is `{shortened(value)}`, expected {what} from {low} to {high}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A truth value."""
        value = self._data.get(name, default)
        if not isinstance(value, bool):
            raise CallerError(f"`{name}` is `{shortened(value)}`, expected true or false")
        return value

    def value(self, name: str) -> str:
        """A number, or a text with a unit, which must be there; as text."""
        given = self._data.get(name)
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            got = f"is `{shortened(given)}`" if name in self._data else "is missing"
            raise CallerError(f"`{name}` {got}, expected a number or a text")
        return plain_text(str(given), name, LONGEST)

    def objects(self, name: str, most: int) -> tuple[Mapping[str, Any], ...]:
        """A list of at most ``most`` objects, empty when it is missing."""
        value = self._data.get(name, ())
        if not isinstance(value, list | tuple) or not all(isinstance(one, Mapping) for one in value):
            raise CallerError(f"`{name}` is `{shortened(value)}`, expected a list of objects")
        if len(value) > most:
            raise CallerError(f"`{name}` has {len(value)} members, expected at most {most}")
        return tuple(value)

    def scalar(self, name: str) -> Scalar:
        """A text, number or truth value, which must be there."""
        return _scalar(self._data.get(name), name, f"`{name}`")

    def scalars(self, name: str) -> dict[str, Scalar]:
        """An object of texts, numbers and truth values."""
        value = self._data.get(name, {})
        if not isinstance(value, Mapping):
            raise CallerError(f"`{name}` is not an object, expected parameters by name")
        for key in value:
            plain_text(key, name, LONGEST)
        return {key: _scalar(one, key, f"`{key}` in `{name}`") for key, one in value.items()}


def _scalar(value: Any, name: str, where: str) -> Scalar:
    if isinstance(value, str):
        return plain_text(value, name, LONGEST)
    if isinstance(value, int | float):
        return value
    raise CallerError(f"{where} is `{shortened(value)}`, expected a text, number or truth value")


def plain_text(value: Any, name: str, longest: int) -> str:
    """Return ``value`` if it is a text that can be stored and shown."""
    if not isinstance(value, str):
        raise CallerError(f"`{name}` is `{shortened(value)}`, expected a text")
    if len(value) > longest:
        raise CallerError(f"`{name}` has {len(value)} characters, expected at most {longest}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise CallerError(f"`{name}` contains half a surrogate pair, which is not a character") from None
    return value


def shortened(value: Any) -> str:
    """``value`` for a message."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return shown.encode("utf-8", "replace").decode()


def policy_text(body: Any, limit: int, *others: str) -> str:
    """The sentences in the body ``{"policy": "FOR …"}``, which may have the further fields ``others``.

    :raises CallerError: when the body has another form, or its text is not valid
    """
    if not isinstance(body, Mapping):
        raise CallerError('the body is no object, expected `{"policy": "FOR …"}`')
    refuse_unknown(body, ("policy", *others), "field")
    text = body.get("policy")
    if not isinstance(text, str):
        raise CallerError("`policy` is missing, expected a sentence" if text is None else "`policy` is not a text")
    plain_text(text, "policy", limit)
    if not text.strip():
        raise CallerError("`policy` is empty, expected a sentence")
    return text


def empty_body(body: Any) -> None:
    """Check that a body has no fields.

    :raises CallerError: when it has any
    """
    Body(body)


def read_rate(name: str, text: str) -> float:
    """Bytes per second in the field ``name``: a number with its unit, or in MB/s without one.

    :raises CallerError: when it is not a rate, or less than a byte per second
    """
    try:
        rate = read_quantity(text, "rate", BARE_RATE)
    except UnitError as error:
        near = f", did you mean `{error.near_miss}`" if error.near_miss else ""
        raise CallerError(f"`{name}`: {error}{near}") from error
    if not 1 <= rate <= MOST_RATE:
        raise CallerError(f"`{name}` is `{text}`, expected at least 1 B/s")
    return float(rate)
