"""What a resource looks like: columns, described once for lists, single resources and every format.

Machine formats (``-f json``, ``yaml``) get values as the controller gave them; a table gets text on
lines of its own making, without the control characters that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from cliff.columns import FormattableColumn

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, where its value is, and whether a list shows it only with ``--long``.

    What an older controller does not say is empty.
    """

    title: str
    value: Callable[[Data], Any]
    long: bool = False
    human: Callable[[Any], str] | None = None

    @classmethod
    def of(cls, title: str, key: str = "", long: bool = False, human: Callable[[Any], str] | None = None) -> Self:
        """A column whose value stands under ``key``, by default the title in lower case."""
        name = key or title.lower().replace(" ", "_")
        return cls(title, lambda data: data.get(name), long, human)

    def cell(self, data: Data) -> Any:
        """What stands in this column; a number is one in every format."""
        value = self.value(data)
        if self.human is None and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        return Cell(value, plainly if value is None or self.human is None else self.human)


class Cell(FormattableColumn[Any]):
    """A value and how people read it."""

    def __init__(self, value: Any, human: Callable[[Any], str]) -> None:
        super().__init__(value)
        self._human = human

    def human_readable(self) -> str:
        """Called by formats for people."""
        return self._human(self._value)


def plainly(value: Any) -> str:
    """Any value of JSON as text."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(name))}={plainly(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(plainly, value))
    return plain(str(value))


def lines(of_one: Callable[[Any], str]) -> Callable[[Any], str]:
    """For lists: a line for each, as ``of_one`` says it."""
    return lambda value: "\n".join(plain(of_one(one)) for one in value)


def plain(text: str) -> str:
    """``text`` on one line and without control characters, which a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def iso_time(milliseconds: int) -> str:
    """Unix milliseconds as ISO 8601 in UTC, as the controller writes times elsewhere."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
