"""Columns and rows of CSV chosen where the data lie, instead of sending all of it.

A policy without parameters lets clients ask: ``X-Csv-Select: columns=name,city; where=age >= 18`` on a GET gives
these columns of these rows, ``X-Csv-Range: bytes=0-9999`` the records that begin there, so that
consecutive ranges hold each record once.  Without these headers nothing changes.  A policy with ``columns`` or
``where`` holds for every GET, and clients may only narrow it.

``dialect`` says what CSV is, ``language`` what conditions mean, ``query`` who may see what.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from sluice_core.describe import FILTER, PLACES, STORAGE_NODE, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter, Hint, Stream
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.language import Condition
from sluice_filters.csv.parser import parse
from sluice_filters.csv.query import HEADERS, Query, Selection, parse_columns
from sluice_filters.csv.select_headers import narrow_query, read_range
from sluice_filters.csv.stream import CsvStream

SELECT: Final = "X-Csv-Select"
RANGE: Final = "X-Csv-Range"

#: What every filter on CSV must be told, of the form of its objects.
DIALECT_PARAMETERS: Final = (
    Parameter("delimiter", "str", "what separates fields: one ASCII character, or tab", default=","),
    Parameter("quote", "str", "what encloses fields: one ASCII character, or none", default='"'),
    Parameter("multiline", "bool", "line ends inside quotes are data; false: each line is a record", default=True),
)

#: The description of a filter on CSV: it runs on GET, where the data lie unless a policy says otherwise.
csv_info = functools.partial(
    ActionInfo,
    kind=FILTER,
    places=PLACES,
    default_place=STORAGE_NODE,
    on_put=False,
    on_get=True,
    changes_content=True,
    changes_length=True,
)


class CsvFilter(Filter):
    """Base of filters on CSV, whose parameters hold ``DIALECT_PARAMETERS``."""

    heavy: ClassVar[bool] = True

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        """
        :raises BadParameter: as of the base, and for a delimiter or quote that is no single ASCII character
        """
        super().__init__(params)
        delimiter, quote = str(self.params["delimiter"]), str(self.params["quote"] or "")
        self.dialect = Dialect.from_parameters(delimiter, quote, bool(self.params["multiline"]))


class CsvSelect(CsvFilter):
    """Gives some columns and rows of CSV objects."""

    info: ClassVar[ActionInfo] = csv_info(
        keyword="csv_select",
        help="give only some columns and rows of CSV objects; clients may ask for fewer",
        parameters=(
            Parameter("columns", "list", "columns that may be read (names, or _1, _2, ...); empty: all", default=""),
            Parameter("where", "str", "condition that rows must meet, as in SQL; empty: none", default=""),
            Parameter(
                "header",
                "str",
                "the first record holds names (yes), data (no), or is passed over (ignore)",
                default="yes",
                choices=HEADERS,
            ),
            *DIALECT_PARAMETERS,
        ),
        stage=200,
        protective=True,
    )
    asks: ClassVar[tuple[str, ...]] = (SELECT, RANGE)

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        columns, where = str(self.params["columns"] or ""), str(self.params["where"] or "")
        permitted = Selection(parse_columns(columns) if columns else None, _condition(where) if where else None)
        header = str(self.params["header"])
        if header != "yes" and permitted.named():
            raise BadParameter(f"`header` is `{header}`, so columns are called _1, _2 and so on")
        self._query = Query(self.dialect, header, permitted)

    def reads(self, hint: Hint) -> bool:
        return not self._query.permitted.empty or any(_asked(hint))

    def span(self, hint: Hint) -> tuple[int, int | None] | None:
        return self._span(self._wanted(hint), hint)

    def reader(self, hint: Hint) -> Stream:
        query = self._wanted(hint)
        span = self._span(query, hint)
        return CsvStream(query, span[0] if span else 0)

    def _wanted(self, hint: Hint) -> Query:
        """The query of this request: the policy's, narrowed by what the client requests.

        :raises BadParameter: for a request that makes no sense or would widen it
        """
        requested, wanted_range = _asked(hint)
        query = self._query
        if requested:
            query = narrow_query(query, requested)
        if wanted_range:
            first, last = read_range(wanted_range)
            query = replace(query, first=first, last=last)
        return query

    @staticmethod
    def _span(query: Query, hint: Hint) -> tuple[int, int | None] | None:
        """From one byte before the range, to see whether a record begins with it, unless more must be known."""
        joins = query.dialect.multiline and query.dialect.quote
        if hint.size is None or query.first <= len(BYTE_ORDER_MARK) or query.named() or joins:
            return None
        return max(min(query.first, hint.size) - 1, 0), None


def _condition(text: str) -> Condition:
    try:
        return parse(text)
    except BadParameter as error:
        raise BadParameter(f"`where`: {error}") from error


def _asked(hint: Hint) -> tuple[str, str]:
    return hint.asked.get(SELECT, "").strip(), hint.asked.get(RANGE, "").strip()
