"""Reading the argument of a method: each member is checked, and an error says what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sluice_objects.api import Refused, Value
from sluice_objects.names import LONGEST, unknown
from sluice_objects.values import pack

#: Bytes of a key, and of an encoded value that a class keeps; an answer has room for each.
LONGEST_KEY: Final = 1024
LARGEST_VALUE: Final = 512 << 10
LARGEST_NUMBER: Final = (1 << 63) - 1
#: Seconds of a time-out.
LONGEST_TIMEOUT: Final = 86_400.0
_KINDS: Final = {
    type(None): "nothing",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    bytes: "bytes",
    list: "a list",
    dict: "a map",
}


class Arguments:
    """The members of an argument; a member that is None counts as missing, except for :meth:`value`.

    :param argument: a map, or None without members
    :param names: of the members that the method knows
    :raises Refused: by each method, too
    """

    def __init__(self, argument: Value, *names: str) -> None:
        members = {} if argument is None else argument
        if not isinstance(members, dict):
            raise Refused(f"the argument is {_kind(argument)}, expected a map")
        for name in members:
            if name not in names:
                raise Refused(unknown("argument", str(name), names))
        self._members: dict[str, Any] = members

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    def text(self, name: str, default: str | None = None, longest: int = LONGEST_KEY) -> str:
        """Unicode text of up to ``longest`` bytes in UTF-8; without a default it has one at least."""
        expected = f"text of {0 if default is not None else 1} to {longest} bytes"
        text: str = self._get(name, default, (str,), expected)
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise Refused(f"argument `{name}` is not Unicode: {error.reason}") from error
        if size > longest or (size == 0 and default is None):
            raise Refused(f"argument `{name}` has {size} bytes, expected {expected}")
        return text

    def key(self, name: str) -> bytes:
        """A text that is a key."""
        return self.text(name).encode()

    def word(self, name: str, words: Sequence[str], default: str) -> str:
        """One of ``words``."""
        word = self.text(name, default)
        if word not in words:
            raise Refused(unknown(f"word of argument `{name}`", word, words))
        return word

    def data(self, name: str) -> bytes:
        """Bytes, which may be given as text."""
        data = self._get(name, None, (bytes, str), "bytes or text")
        return data if isinstance(data, bytes) else self.text(name, "", len(data) * 4).encode()

    def integer(self, name: str, default: int | None = None, least: int = 0, most: int = LARGEST_NUMBER) -> int:
        """An integer from ``least`` to ``most``."""
        expected = f"an integer from {least} to {most}"
        number: int = self._get(name, default, (int,), expected)
        if not least <= number <= most:
            raise Refused(f"argument `{name}` is `{number}`, expected {expected}")
        return number

    def timeout(self, name: str, default: float | None = None) -> float:
        """Seconds."""
        expected = f"seconds, more than 0 and at most {LONGEST_TIMEOUT:.0f}"
        seconds = self._get(name, default, (int, float), expected)
        if not 0 < seconds <= LONGEST_TIMEOUT:
            raise Refused(f"argument `{name}` is `{seconds}`, expected {expected}")
        return float(seconds)

    def value(self, name: str) -> bytes:
        """Any value, which may be None, encoded."""
        if name not in self._members:
            raise Refused(f"argument `{name}` is missing, expected a value")
        try:
            packed = pack(self._members[name])
        except ValueError as error:
            raise Refused(f"argument `{name}`: {error}") from error
        if len(packed) > LARGEST_VALUE:
            raise Refused(f"argument `{name}` has {len(packed)} bytes, expected at most {LARGEST_VALUE}", 413)
        return packed

    def rows(self, name: str, *names: str, most: int) -> list[Arguments]:
        """A list of 1 to ``most`` maps with members of ``names``."""
        expected = f"a list of 1 to {most} maps"
        rows = self._get(name, None, (list,), expected)
        if not 1 <= len(rows) <= most:
            raise Refused(f"argument `{name}` has {len(rows)} members, expected {expected}")
        return [Arguments(row, *names) for row in rows]

    def _get(self, name: str, default: Any, kinds: tuple[type, ...], expected: str) -> Any:
        member = self._members.get(name)
        if member is None:
            if default is None:
                raise Refused(f"argument `{name}` is missing, expected {expected}")
            return default
        if type(member) not in kinds:
            raise Refused(f"argument `{name}` is {_kind(member)}, expected {expected}")
        return member


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), f"`{type(value).__name__[:LONGEST]}`")
