"""Select columns and rows of CSV near the data, in place of sending the whole object.

A policy without parameters permits clients to select: ``X-Csv-Select: columns=name,city; where=age >= 18`` on a GET
gives these columns of these rows, ``X-Csv-Range: bytes=0-9999`` the records that begin there, so that consecutive
ranges hold each record once.  Without these headers nothing changes.  A policy with ``columns`` or ``where`` applies to
every GET, and clients may only narrow it.

The request of a client::

    X-Csv-Select = part {";" part}      part = columns=a,"b c",_3 | where=condition | header=yes|no|ignore
                                             | delimiter=tab | quote=none | multiline=yes|no
    X-Csv-Range  = bytes=first-[last]

A ``;`` inside quotes is no separator.  If a policy restricts columns or rows, only the policy sets the delimiters of
fields and records.

``dialect`` defines CSV, ``language`` the conditions, ``query`` the permissions.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from sluice_core.describe import FILTER, PLACES, STORAGE_NODE, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter, Hint, Stream
from sluice_filters.csv.dialect import BYTE_ORDER_MARK, Dialect
from sluice_filters.csv.language import Condition
from sluice_filters.csv.parser import parse
from sluice_filters.csv.query import HEADERS, Query, Selection, parse_columns
from sluice_filters.csv.stream import CsvStream

SELECT: Final = "X-Csv-Select"
RANGE: Final = "X-Csv-Range"
_PARTS: Final = re.compile(r"""(?:[^;'"]|'[^']*'|"[^"]*")+""")
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")
_NAMES: Final = ("columns", "where", "header", "delimiter", "quote", "multiline")
_TRUTH: Final = {"yes": True, "no": False, "true": True, "false": False}

#: Parameters of every filter on CSV, for the form of its objects.
DIALECT_PARAMETERS: Final = (
    Parameter("delimiter", "str", "what separates fields: one ASCII character, or tab", default=","),
    Parameter("quote", "str", "what encloses fields: one ASCII character, or none", default='"'),
    Parameter("multiline", "bool", "line ends inside quotes are data; false: each line is a record", default=True),
)

#: The description of a filter on CSV: it runs on GET, near the data unless a policy sets another place.
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
        :raises BadParameter: as the base class, and for a delimiter or quote that is not a single ASCII character
        """
        super().__init__(params)
        delimiter, quote = str(self.params["delimiter"]), str(self.params["quote"] or "")
        self.dialect = Dialect.from_parameters(delimiter, quote, bool(self.params["multiline"]))


class CsvSelect(CsvFilter):
    """Returns some columns and rows of CSV objects."""

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
        return not self._query.permitted.empty or any(_client_request(hint))

    def span(self, hint: Hint) -> tuple[int, int | None] | None:
        return self._span(self._wanted(hint), hint)

    def reader(self, hint: Hint) -> Stream:
        query = self._wanted(hint)
        span = self._span(query, hint)
        return CsvStream(query, span[0] if span else 0)

    def _wanted(self, hint: Hint) -> Query:
        """Return the query of this request: the policy's, narrowed by the client's.

        :raises BadParameter: for a request that is invalid or would widen it
        """
        requested, wanted_range = _client_request(hint)
        query = self._query
        if requested:
            query = narrow_query(query, requested)
        if wanted_range:
            first, last = read_range(wanted_range)
            query = replace(query, first=first, last=last)
        return query

    @staticmethod
    def _span(query: Query, hint: Hint) -> tuple[int, int | None] | None:
        """Start one byte before the range, to see whether a record begins with it, unless earlier bytes are needed."""
        joins = query.dialect.multiline and query.dialect.quote
        if hint.size is None or query.first <= len(BYTE_ORDER_MARK) or query.named() or joins:
            return None
        return max(min(query.first, hint.size) - 1, 0), None


def _condition(text: str) -> Condition:
    try:
        return parse(text)
    except BadParameter as error:
        raise BadParameter(f"`where`: {error}") from error


def _client_request(hint: Hint) -> tuple[str, str]:
    return hint.asked.get(SELECT, "").strip(), hint.asked.get(RANGE, "").strip()


def narrow_query(query: Query, text: str) -> Query:
    """Return ``query`` narrowed by the request in ``text``.

    :raises BadParameter: for invalid requests, and for parameters that the client must not set
    """
    parts = _parts(_unicode(text))
    columns = parse_columns(parts["columns"]) if "columns" in parts else None
    where = parse(parts["where"]) if "where" in parts else None
    header = parts.get("header", query.header).lower()
    if header not in HEADERS:
        raise BadParameter(f"`header` is `{header}`, expected one of {', '.join(HEADERS)}")
    narrowed = replace(
        query, dialect=_dialect(query.dialect, parts), header=header, requested=Selection(columns, where)
    )
    if not query.permitted.empty:
        _check_form(query, narrowed)
    if header in ("no", "ignore") and narrowed.requested.named():
        raise BadParameter(f"with header={header} columns are called _1, _2 and so on")
    return narrowed


def read_range(text: str) -> tuple[int, int | None]:
    """Return first and last byte of ``text``; last None is the end.

    :raises BadParameter: for another form
    """
    match = _RANGE.fullmatch(text.replace(" ", ""))
    if match is None:
        raise BadParameter(f"`X-Csv-Range` is `{text}`, expected bytes=first-last")
    first, last = int(match[1]), int(match[2]) if match[2] else None
    if last is not None and last < first:
        raise BadParameter(f"`X-Csv-Range` is `{text}`, its last byte is before its first")
    return first, last


def _unicode(text: str) -> str:
    """Header values are bytes that WSGI decodes as Latin-1; these are UTF-8."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _parts(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    if re.sub(_PARTS, "", text).strip("; "):
        raise BadParameter(f"`X-Csv-Select` is `{text}`, a quote is not closed")
    for part in _PARTS.findall(text):
        name, equals, value = part.partition("=")
        name = name.strip().lower()
        if not part.strip():
            continue
        if not equals or name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            raise BadParameter(f"`X-Csv-Select` has no `{name}`{hint}: it has {', '.join(_NAMES)}")
        if name in values:
            raise BadParameter(f"`X-Csv-Select` says `{name}` twice")
        values[name] = value.strip()
    return values


def _dialect(dialect: Dialect, parts: dict[str, str]) -> Dialect:
    if not {"delimiter", "quote", "multiline"} & parts.keys():
        return dialect
    multiline = parts.get("multiline", "yes" if dialect.multiline else "no").lower()
    if multiline not in _TRUTH:
        raise BadParameter(f"`multiline` is `{multiline}`, expected yes or no")
    return Dialect.from_parameters(
        parts.get("delimiter", dialect.delimiter.decode()),
        parts.get("quote", dialect.quote.decode()),
        _TRUTH[multiline],
    )


def _check_form(query: Query, wanted: Query) -> None:
    """Refuse a client's dialect that differs from the policy's: it could read restricted data."""
    for name, ours, theirs in (
        ("header", query.header, wanted.header),
        ("delimiter", query.dialect.delimiter, wanted.dialect.delimiter),
        ("quote", query.dialect.quote, wanted.dialect.quote),
        ("multiline", query.dialect.multiline, wanted.dialect.multiline),
    ):
        if ours != theirs:
            raise BadParameter(f"`{name}` is set by the policy on this object, and not for clients to change")
