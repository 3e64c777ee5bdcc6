"""Columns: the display of a resource's fields, described once for lists, single resources and every format.

Machine formats (``-f json``, ``yaml``) get the values of the controller; tables get text without control characters,
which a terminal would interpret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from cliff.columns import FormattableColumn

Data = Mapping[str, Any]
#: Bytes in a megabyte, the unit of rates.
MEGABYTE: Final = 1e6


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, the function for its value, and whether a list shows it only with ``--long``.

    A field that an older controller does not send is empty.
    """

    title: str
    value: Callable[[Data], Any]
    long: bool = False
    human: Callable[[Any], str] | None = None

    @classmethod
    def field(cls, title: str, key: str = "", long: bool = False, human: Callable[[Any], str] | None = None) -> Self:
        """Return a column whose value is under ``key``, by default the title in lower case."""
        name = key or title.lower().replace(" ", "_")
        return cls(title, lambda data: data.get(name), long, human)

    def cell(self, data: Data) -> Any:
        """Return the value for cliff; numbers stay numbers in every format."""
        value = self.value(data)
        if self.human is None and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        return Cell(value, to_text if value is None or self.human is None else self.human)


def fields(*titles: str, long: bool = False) -> tuple[Column, ...]:
    """Return a column for each title, whose value is under the title in lower case."""
    return tuple(Column.field(title, long=long) for title in titles)


@dataclass(frozen=True, slots=True)
class ParamsColumn(Column):
    """The parameters of an action: values in base units for machine formats, with their units in tables."""

    def cell(self, data: Data) -> Any:
        """The value for cliff."""
        return Cell(data["params"], lambda _: params_text(data))


class Cell(FormattableColumn[Any]):
    """A value and its text for tables."""

    def __init__(self, value: Any, human: Callable[[Any], str]) -> None:
        super().__init__(value)
        self._human = human

    def human_readable(self) -> str:
        """Called by formats for tables."""
        return self._human(self._value)


def to_text(value: Any) -> str:
    """Return any value of JSON as text."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(str(name))}={to_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(to_text, value))
    return printable(str(value))


def params_text(data: Data) -> str:
    """Return the parameters of an action with their units; empty from an older controller, which does not send the
    text.
    """
    text = data.get("params_text")
    return to_text(data["params"]) if text is None else printable(str(text))


def rate_text(value: Any) -> str:
    """Return bytes per second in MB/s, to the kilobyte."""
    return f"{round(value / MEGABYTE, 3):.15g} MB/s"


def seconds_text(value: Any) -> str:
    """Seconds with their unit."""
    return f"{value:.15g} s"


def lines(line_of: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a formatter for lists: a line for each item, from ``line_of``."""
    return lambda value: "\n".join(printable(line_of(one)) for one in value)


def printable(text: str) -> str:
    """Return ``text`` on one line and without control characters, which a terminal would interpret."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def iso_time(milliseconds: int) -> str:
    """Return unix milliseconds as ISO 8601 in UTC, in the controller's form of times."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
