"""The query on a CSV object, and its resolution to the object's columns.

A query has two selections of columns and rows.  The policy's selection applies to every reader; the client's may choose
among the permitted columns and add a condition on them.  Names are resolved once the header is known; faults name only
columns that the client may know.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from sluice_filters.api import BadParameter, FilterError
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.language import Column, Condition, all_of, list_columns, map_columns

#: The meaning of the first record for policies and clients: names that are written too, data, or skipped.
HEADERS: Final = ("yes", "no", "ignore")
#: Greatest number of missing fields that are written empty, for one block.
MOST_ADDED: Final = 32 << 20
#: Number of characters of column names that an error shows.
_SHOWN: Final = 1000
_POSITION: Final = re.compile(r"_([1-9][0-9]{0,4})")


@dataclass(frozen=True, slots=True)
class Selection:
    """Columns (None: all) and the condition that rows must meet (None: none)."""

    columns: tuple[Column, ...] | None = None
    where: Condition | None = None

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return self.columns is None and self.where is None

    def mentioned(self) -> list[Column]:
        """Every column in the selection and its condition."""
        return [*(self.columns or ()), *(list_columns(self.where) if self.where else ())]

    def named(self) -> bool:
        """Whether the header is needed to resolve its columns."""
        return any(_POSITION.fullmatch(one.name) is None for one in self.mentioned())


@dataclass(frozen=True, slots=True)
class Query:
    """All parameters of the query on one object."""

    dialect: Dialect
    #: One of ``HEADERS``, or ``use``: names that are not written.
    header: str = "yes"
    permitted: Selection = Selection()
    requested: Selection = Selection()
    #: First and last byte between which a record must begin; last None: no limit.
    first: int = 0
    last: int | None = None

    @property
    def has_header(self) -> bool:
        """Whether the first record of the object is not data."""
        return self.header != "no"

    def begins(self, place: int) -> bool:
        """Whether a record that begins at ``place`` is in the range."""
        return self.first <= place and (self.last is None or place <= self.last)

    def named(self) -> bool:
        """Whether the object's header must be read."""
        return self.permitted.named() or self.requested.named()


@dataclass(frozen=True, slots=True)
class Plan:
    """A query with columns as positions from 0; with ``columns`` None, whole records are written."""

    dialect: Dialect
    columns: tuple[int, ...] | None = None
    where: Condition | None = None

    def condition_columns(self) -> tuple[int, ...]:
        """Positions that the condition needs."""
        found = {one.index for one in list_columns(self.where)} if self.where else set()
        return tuple(sorted(index for index in found if index is not None))

    def heading(self) -> Plan:
        """The plan that writes the header's columns."""
        return replace(self, where=None)


def parse_columns(text: str) -> tuple[Column, ...]:
    """Parse columns separated by commas; a name with a comma is in double quotes."""
    fault = f"`columns` is `{text}`, expected names separated by commas"
    try:
        rows = list(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:  # a line end outside of quotes, a name without its closing quote
        raise BadParameter(f"{fault}: {error}") from error
    names = [name.strip() for name in rows[0]] if rows else []
    if not names or not all(names) or len(rows) > 1:
        raise BadParameter(fault)
    return tuple(Column(name) for name in names)


def make_plan(query: Query, names: Sequence[str] | None) -> Plan:
    """Resolve ``query`` for an object whose header is ``names`` (None: it has none, or it was not read).

    :raises BadParameter: for missing columns, and for those that the policy does not permit
    """
    for one in query.permitted.mentioned():
        if _position(one, names) is None:  # the client may not know the existing columns
            raise BadParameter(f"no column `{one.name}`, which the policy on this object names")
    permitted, condition = _resolve(query.permitted, names, None)
    requested, requested_condition = _resolve(query.requested, names, None if permitted is None else set(permitted))
    columns = permitted if requested is None else requested
    if columns is not None and len(set(columns)) < len(columns):
        twice = next(one for one in columns if columns.count(one) > 1)
        raise BadParameter(
            f"column `{names[twice] if names and twice < len(names) else f'_{twice + 1}'}` is named twice"
        )
    return Plan(query.dialect, columns, all_of(condition, requested_condition))


def check_added(fields: int) -> None:
    """Check that a short request does not make a large output from a small object.

    :raises FilterError: for more than ``MOST_ADDED`` missing fields
    """
    if fields > MOST_ADDED:
        raise FilterError(
            "the selection names so many columns that are not there that it would be larger than the object"
        )


def _resolve(
    selection: Selection, names: Sequence[str] | None, allowed: Set[int] | None
) -> tuple[tuple[int, ...] | None, Condition | None]:
    """The positions of the columns of ``selection``, and its condition with positions."""

    def find(column: Column) -> int:
        return _find(column, names, allowed)

    columns = tuple(map(find, selection.columns)) if selection.columns else None
    where = selection.where and map_columns(selection.where, lambda column: replace(column, index=find(column)))
    return columns, where


def _find(column: Column, names: Sequence[str] | None, allowed: Set[int] | None) -> int:
    """The position of ``column``."""
    index = _position(column, names)
    if index is not None and (allowed is None or index in allowed):
        return index
    if names is None:
        raise BadParameter(f"no column `{column.name}`: without a header columns are called _1, _2 and so on")
    known = [name for place, name in enumerate(names) if allowed is None or place in allowed]
    near = difflib.get_close_matches(column.name, known, 1)
    hint = f", did you mean `{near[0][:_SHOWN]}`" if near else ""
    shown = ", ".join(known[:50])[:_SHOWN] + (" and more" if len(known) > 50 else "")
    raise BadParameter(f"no column `{column.name}`{hint}: there are {shown}")


def _position(column: Column, names: Sequence[str] | None) -> int | None:
    """The position by number (with or without a header), by exact name, or by an unambiguous name in any case."""
    numbered = _POSITION.fullmatch(column.name)
    if numbered:
        return int(numbered[1]) - 1
    for place, name in enumerate(names or ()):
        if name == column.name:
            return place
    folded = column.name.lower()
    alike = [place for place, name in enumerate(names or ()) if name.lower() == folded]
    return alike[0] if len(alike) == 1 else None
