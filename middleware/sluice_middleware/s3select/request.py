"""The XML of SelectObjectContent, read into what is wanted; what cannot be done is refused in S3's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice_filters.api import BadParameter
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.query import Query, Selection
from sluice_middleware.s3select.sql import Statement, parse_statement
from sluice_middleware.swift.s3api import S3Error, parse_xml

#: S3's own limit on the expression; the rest of a request is small.
LONGEST: Final = 512 * 1024
_LONGEST_EXPRESSION: Final = 256 * 1024
_HEADERS: Final = {"NONE": "no", "USE": "use", "IGNORE": "ignore"}
_LINE_ENDS: Final = ("\n", "\r\n")


@dataclass(frozen=True, slots=True)
class Output:
    """How selected records are written; ``json`` one object per record instead of CSV."""

    dialect: Dialect
    always_quoted: bool = False
    record_end: bytes = b"\n"
    json: bool = False


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """What one request asks for."""

    statement: Statement
    query: Query
    output: Output
    gzip: bool = False
    progress: bool = False


def read_request(body: bytes) -> SelectRequest:
    """What ``body`` asks for.

    :raises S3Error: what S3 answers to what makes no sense or is not supported here
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
