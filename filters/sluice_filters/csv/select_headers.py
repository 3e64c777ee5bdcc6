"""What a client asks for: ``X-Csv-Select`` and ``X-Csv-Range``.

    X-Csv-Select = part {";" part}      part = columns=a,"b c",_3 | where=condition | header=yes|no|ignore
                                             | delimiter=tab | quote=none | multiline=yes|no
    X-Csv-Range  = bytes=first-[last]

A ``;`` inside quotes separates nothing.  Where a policy holds columns or rows back, what tells fields and records
apart is the policy's alone.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import Final

from sluice_filters.api import BadParameter
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.parser import parse
from sluice_filters.csv.query import HEADERS, Query, Selection, parse_columns

_PARTS: Final = re.compile(r"""(?:[^;'"]|'[^']*'|"[^"]*")+""")
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")
_NAMES: Final = ("columns", "where", "header", "delimiter", "quote", "multiline")
_TRUTH: Final = {"yes": True, "no": False, "true": True, "false": False}


def narrow_query(query: Query, text: str) -> Query:
    """``query`` narrowed by the request in ``text``.

    :raises BadParameter: for what cannot be understood, or is not for the client to say
    """
    parts = _parts(_unicode(text))
    columns = parse_columns(parts["columns"]) if "columns" in parts else None
    where = parse(parts["where"]) if "where" in parts else None
    header = parts.get("header", query.header).lower()
    if header not in HEADERS:
        raise BadParameter(f"`header` is `{header}`, expected one of {', '.join(HEADERS)}")
    found = replace(query, dialect=_dialect(query.dialect, parts), header=header, requested=Selection(columns, where))
    if not query.permitted.empty:
        _check_form(query, found)
    if header in ("no", "ignore") and found.requested.named():
        raise BadParameter(f"with header={header} columns are called _1, _2 and so on")
    return found


def read_range(text: str) -> tuple[int, int | None]:
    """First and last byte of ``text``; last None is the end.

    :raises BadParameter: for another form
    """
    found = _RANGE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise BadParameter(f"`X-Csv-Range` is `{text}`, expected bytes=first-last")
    first, last = int(found[1]), int(found[2]) if found[2] else None
    if last is not None and last < first:
        raise BadParameter(f"`X-Csv-Range` is `{text}`, its last byte is before its first")
    return first, last


def _unicode(text: str) -> str:
    """Header values are bytes that WSGI shows as Latin-1; ours are UTF-8."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _parts(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
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
        if name in found:
            raise BadParameter(f"`X-Csv-Select` says `{name}` twice")
        found[name] = value.strip()
    return found


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
    """A client that reads records otherwise than the policy would see what it holds back."""
    for name, ours, theirs in (
        ("header", query.header, wanted.header),
        ("delimiter", query.dialect.delimiter, wanted.dialect.delimiter),
        ("quote", query.dialect.quote, wanted.dialect.quote),
        ("multiline", query.dialect.multiline, wanted.dialect.multiline),
    ):
        if ours != theirs:
            raise BadParameter(f"`{name}` is set by the policy on this object, and not for clients to change")
