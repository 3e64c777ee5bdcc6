"""Parses the XML of SelectObjectContent and its SQL; unsupported requests are refused with S3's errors.

The supported SQL has the conditions of csv_select::

    SELECT * | COUNT(*) | column [AS name] {, column [AS name]}
      FROM S3Object [[*]] [[AS] alias] [WHERE condition] [LIMIT number]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice_filters.api import BadParameter
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.language import Column, Condition
from sluice_filters.csv.parser import ConditionParser
from sluice_filters.csv.query import Query, Selection
from sluice_middleware.swift.s3api import S3Error, parse_xml

#: S3's own limit on the expression; the other elements of a request are short.
LONGEST: Final = 512 * 1024
_LONGEST_EXPRESSION: Final = 256 * 1024
_HEADERS: Final = {"NONE": "no", "USE": "use", "IGNORE": "ignore"}
_LINE_ENDS: Final = ("\n", "\r\n")
_TABLE: Final = "s3object"
_CLAUSES: Final = ("WHERE", "LIMIT", "AS", "FROM")
_FUNCTIONS: Final = (
    *("AVG", "MAX", "MIN", "SUM", "COALESCE", "NULLIF", "CHAR_LENGTH", "CHARACTER_LENGTH", "LOWER", "UPPER"),
    *("SUBSTRING", "TRIM", "DATE_ADD", "DATE_DIFF", "EXTRACT", "TO_STRING", "TO_TIMESTAMP", "UTCNOW", "CASE"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """``columns`` None is all; ``names`` are their names in the output; ``count``: count rows instead."""

    columns: tuple[Column, ...] | None
    names: tuple[str, ...]
    where: Condition | None
    limit: int | None
    count: bool = False


def parse_statement(text: str) -> Statement:
    """The statement in ``text``.

    :raises BadParameter: with the place and the expected word
    """
    reader = ConditionParser(text.rstrip().removesuffix(";"), {_TABLE, _alias(text)})
    reader.expect("SELECT")
    count, items = _items(reader)
    reader.expect("FROM")
    _table(reader)
    where = reader.condition() if reader.accept("WHERE") else None
    limit = _limit(reader) if reader.accept("LIMIT") else None
    if reader.kind:
        raise reader.expected("WHERE, LIMIT or the end")
    columns = None if items is None else tuple(column for column, _ in items)
    return Statement(columns, tuple(name for _, name in items or ()), where, limit, count)


def _alias(text: str) -> str:
    """The table's alias, which must be known before the columns that use it are read."""
    reader = ConditionParser(text.rstrip().removesuffix(";"))
    while reader.kind and not reader.accept("FROM"):
        reader.next()
    return _table(reader).lower() if reader.kind else ""


def _table(reader: ConditionParser) -> str:
    name = reader.name()
    if name.lower() != _TABLE:
        raise BadParameter(f"FROM is `{name}`, expected S3Object: an object of CSV is one table")
    if reader.accept("["):
        reader.expect("*")
        reader.expect("]")
    if reader.accept("."):
        raise reader.expected("no path: an object of CSV is one table")
    if reader.accept("AS"):
        return reader.name()
    if reader.kind in ("word", "quoted") and not reader.is_word(*_CLAUSES):
        return reader.name()
    return ""


def _items(reader: ConditionParser) -> tuple[bool, list[tuple[Column, str]] | None]:
    if reader.accept("*"):
        return False, None
    if reader.accept("COUNT"):
        reader.expect("(")
        reader.expect("*")
        reader.expect(")")
        if reader.accept("AS"):
            reader.name()
        return True, None
    columns: list[tuple[Column, str]] = []
    while not columns or reader.accept(","):
        if reader.is_word(*_FUNCTIONS, "COUNT", "CAST"):
            raise BadParameter(f"`{reader.token}` is not supported after SELECT: name columns, * or COUNT(*)")
        column = reader.column()
        columns.append((column, reader.name() if reader.accept("AS") else column.name))
    return False, columns


def _limit(reader: ConditionParser) -> int:
    if reader.kind != "number" or not reader.token.isdigit():
        raise reader.expected("a whole number")
    return int(reader.next())


@dataclass(frozen=True, slots=True)
class Output:
    """The format of selected records; ``json``: one object per record instead of CSV."""

    dialect: Dialect
    always_quoted: bool = False
    record_end: bytes = b"\n"
    json: bool = False


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """The contents of one request."""

    statement: Statement
    query: Query
    output: Output
    gzip: bool = False
    progress: bool = False


def read_request(body: bytes) -> SelectRequest:
    """Parse ``body``.

    :raises S3Error: as S3 answers invalid or unsupported requests
    """
    root = parse_xml(body)
    expression = _text(root, "Expression")
    if not expression or len(expression.encode()) > _LONGEST_EXPRESSION:
        raise S3Error("InvalidRequest", f"Expression is missing or longer than {_LONGEST_EXPRESSION} bytes")
    if (_text(root, "ExpressionType") or "SQL").upper() != "SQL":
        raise S3Error("InvalidExpressionType", "the ExpressionType is invalid: only SQL expressions are supported")
    source = root.find("InputSerialization")
    target = root.find("OutputSerialization")
    if source is None or target is None:
        raise S3Error("MissingRequiredParameter", "InputSerialization and OutputSerialization are required")
    try:
        statement = parse_statement(expression)
        dialect, header = _input(source)
        output = _output(target)
        first, last = _scan_range(root.find("ScanRange"))
    except BadParameter as error:
        raise S3Error("ParseUnexpectedToken", str(error)) from error
    choice = Selection(statement.columns, statement.where)
    if header != "use" and choice.named():
        raise S3Error("InvalidColumnIndex", "columns are called _1, _2 and so on unless FileHeaderInfo is USE")
    gzip = _compression(source)
    if gzip and (first or last is not None):
        raise S3Error("UnsupportedScanRangeInput", "ScanRange is not supported with compressed objects")
    query = Query(dialect, header, requested=choice, first=first, last=last)
    enabled = (_text(root, "RequestProgress/Enabled") or "false").lower() == "true"
    return SelectRequest(statement, query, output, gzip, enabled)


def _text(element: Any, path: str) -> str | None:
    found = element.find(path)
    return None if found is None else (found.text or "")


def _compression(source: Any) -> bool:
    kind = (_text(source, "CompressionType") or "NONE").upper()
    if kind not in ("NONE", "GZIP"):
        raise S3Error("InvalidCompressionFormat", f"`{kind}` is not supported here, use NONE or GZIP")
    return kind == "GZIP"


def _input(source: Any) -> tuple[Dialect, str]:
    csv = source.find("CSV")
    if csv is None:
        other = next((name for name in ("JSON", "Parquet") if source.find(name) is not None), "nothing")
        raise S3Error("NotImplemented", f"input is `{other}`: only CSV is supported here", "501 Not Implemented")
    header = (_text(csv, "FileHeaderInfo") or "NONE").upper()
    if header not in _HEADERS:
        raise S3Error("InvalidFileHeaderInfo", f"FileHeaderInfo is `{header}`, expected NONE, USE or IGNORE")
    if _text(csv, "Comments"):
        raise S3Error("NotImplemented", "Comments in CSV are not supported here", "501 Not Implemented")
    if (_text(csv, "RecordDelimiter") or "\n") not in _LINE_ENDS:
        raise S3Error("InvalidTextEncoding", "the RecordDelimiter of input can be a line end only")
    quote = _text(csv, "QuoteCharacter")
    escape = _text(csv, "QuoteEscapeCharacter")
    quote = '"' if quote is None else quote
    if escape and escape != quote:
        raise S3Error("NotImplemented", "quotes in quotes are doubled, there is no other escape", "501 Not Implemented")
    joined = (_text(csv, "AllowQuotedRecordDelimiter") or "false").lower() == "true"
    return Dialect.from_parameters(_text(csv, "FieldDelimiter") or ",", quote, joined), _HEADERS[header]


def _output(target: Any) -> Output:
    json, csv = target.find("JSON"), target.find("CSV")
    if json is not None:
        return Output(Dialect(), record_end=(_text(json, "RecordDelimiter") or "\n").encode(), json=True)
    if csv is None:
        raise S3Error("MissingRequiredParameter", "OutputSerialization must name CSV or JSON")
    fields = (_text(csv, "QuoteFields") or "ASNEEDED").upper()
    if fields not in ("ALWAYS", "ASNEEDED"):
        raise S3Error("InvalidQuoteFields", f"QuoteFields is `{fields}`, expected ALWAYS or ASNEEDED")
    dialect = Dialect.from_parameters(_text(csv, "FieldDelimiter") or ",", _text(csv, "QuoteCharacter") or '"')
    return Output(dialect, fields == "ALWAYS", (_text(csv, "RecordDelimiter") or "\n").encode())


def _scan_range(element: Any) -> tuple[int, int | None]:
    if element is None:
        return 0, None
    start, end = _text(element, "Start"), _text(element, "End")
    if start is None:
        raise S3Error("NotImplemented", "a ScanRange without Start is not supported here", "501 Not Implemented")
    if not start.isdigit() or not (end is None or end.isdigit()) or (end is not None and int(end) < int(start)):
        raise S3Error("InvalidScanRange", f"ScanRange is `{start}` to `{end}`")
    return int(start), None if end is None else int(end)
