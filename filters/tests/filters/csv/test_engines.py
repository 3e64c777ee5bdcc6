"""The vectorised engine gives the bytes of the plain one, which gives the values of other CSV readers."""

import csv
import io
import math
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_filters.csv import arrow, plain
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.language import compile_pattern, parse_number
from sluice_filters.csv.parser import parse
from sluice_filters.csv.query import Column, Query, Selection, make_plan
from sluice_filters.csv.stream import CsvStream
from sluice_filters.testing import run

#: Whether this Python has possessive groups.
POSSESSIVE = sys.version_info >= (3, 11, 5)
VALUES = (
    *("a", "b", "", "5", "-5", "+5", "5.0", "1e3", "1e999", ".5", "5.", "007", "0x10", "--1", "1-1", ".", "+", "e5"),
    *("9007199254740993", "9007199254740992", "9007199254740993.0", "123456789012345678", "1234567890123456789"),
    *("+.5", "x,y", 'q"q', "inf", "_", "%", "'", "Zé", "l\nm", "l\r\nm", "\r", " 5", "5 "),
)
CONDITIONS = (
    "_1 = 5",
    "_1 != 5",
    "_2 >= 5 AND _1 < 1e4",
    "_2 = '5'",
    "_3 != ''",
    "_3 IS NULL",
    "_1 IS NOT NULL AND _2 > '5'",
    "NOT (_1 = 5 OR _2 = 5.0)",
    "_1 IN ('a', 'b', '')",
    "_2 IN (5, 9007199254740993)",
    "_1 LIKE '%a%'",
    "_1 LIKE '_'",
    "_2 LIKE 'x%'",
    "_2 LIKE '%m'",
    "_1 NOT LIKE '%5%0%'",
    "_1 LIKE '!%' ESCAPE '!'",
    "_1 BETWEEN 1 AND 1e4",
    "CAST(_1 AS INT) = CAST(_2 AS FLOAT)",
    "CAST(_1 AS INT) <= CAST(_2 AS FLOAT)",
    "_1 < _2",
    "_9 = 1 OR _1 = 5",
    "NOT _9 = '1'",
    "_9 IS NULL",
    "1 = 1",
    "_1 = 123456789012345678 OR _2 = 1234567890123456789",
    "5 < _1",
    "_2 = 'l\nm' OR _1 = 'q\"q'",
)

dialects = st.builds(
    Dialect, st.sampled_from([b",", b";", b"\t"]), st.sampled_from([b'"', b'"', b"'", b""]), st.booleans()
)
conditions = st.none() | st.sampled_from(CONDITIONS).map(parse)
columns = st.none() | st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(
    lambda numbers: tuple(Column(f"_{number}") for number in numbers)
)


@st.composite
def tables(draw, dialect):
    """Valid and invalid CSV."""
    tidy = draw(st.booleans())
    width = draw(st.integers(1, 4))
    text = b""
    for _ in range(draw(st.integers(0, 8))):
        count = width if tidy else draw(st.integers(1, 5))
        fields = [value.encode() for value in draw(st.lists(st.sampled_from(VALUES), min_size=count, max_size=count))]
        if tidy or draw(st.booleans()):
            fields = [dialect.quoted(one, draw(st.booleans())) for one in fields]
        text += dialect.delimiter.join(fields) + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"]))
    return text if draw(st.booleans()) else text[:-1]


def pieces(draw, text):
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_cut_and_both_engines_give_the_same_bytes(data):
    dialect = data.draw(dialects)
    text = data.draw(tables(dialect) | st.text("a,\";\n\r5'\t", max_size=40).map(str.encode))
    if data.draw(st.booleans()):
        text = b"\xef\xbb\xbf" + text
    header = data.draw(st.sampled_from(["yes", "no", "ignore"]))
    query = Query(dialect, header, requested=Selection(data.draw(columns), data.draw(conditions)))
    expected = run(CsvStream(query, vectorised=False), [text])
    for vectorised in (True, False):
        stream = CsvStream(query, vectorised=vectorised, block=data.draw(st.sampled_from([1, 7, 1 << 20])))
        assert run(stream, pieces(data.draw, text)) == expected


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_consecutive_ranges_hold_every_record_once(data):
    dialect = data.draw(dialects)
    text = data.draw(tables(dialect))
    query = Query(dialect, data.draw(st.sampled_from(["yes", "no", "ignore"])), requested=Selection(data.draw(columns)))
    marks = sorted({0, *data.draw(st.lists(st.integers(0, len(text) + 2), max_size=4))})
    seek = not (dialect.multiline and dialect.quote)
    for vectorised in (True, False):
        found = b""
        for first, stop in zip(marks, [*marks[1:], None], strict=True):
            ranged = Query(
                dialect, query.header, requested=query.requested, first=first, last=None if stop is None else stop - 1
            )
            start = max(min(first, len(text)) - 1, 0) if seek and first > 3 else 0
            stream = CsvStream(ranged, start, vectorised, block=data.draw(st.sampled_from([1, 9, 1 << 20])))
            found += run(stream, pieces(data.draw, text[start:]))
        assert found == run(CsvStream(query), [text])


fields = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.lists(fields, min_size=2, max_size=4), max_size=6))
def test_values_are_those_that_the_standard_library_reads(rows):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    dialect = Dialect()
    records = dialect.records(out.getvalue().encode())
    assert [[dialect.value(raw).decode() for raw in dialect.fields(record)] for record in records] == rows


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('a"b', 'a"b'), ('a""b', 'a""b'), (' "a"', ' "a"'), ('""', ""), ('"a""b"', 'a"b'), ('"a"b', "ab"),
        ('"a', "a"), ('"a""', 'a"'),
    ],
)  # fmt: skip
def test_quotes_are_taken_off_a_field_that_begins_with_one(raw, value):
    assert Dialect().value(raw.encode()) == value.encode()
    assert Dialect(quote=b"").value(raw.encode()) == raw.encode()


@pytest.mark.parametrize("value", [b"a,b", b'a"b', b"a\nb", b"a\rb"])
def test_a_value_that_would_end_its_field_or_record_is_quoted(value):
    assert Dialect().quoted(value) == b'"' + value.replace(b'"', b'""') + b'"'
    assert Dialect().quoted(b"a b") == b"a b"


@given(st.text("0123456789.+-eE x", max_size=12))
def test_numbers_are_the_same_to_both_engines(text):
    number = parse_number(text.encode())
    condition = parse("_1 = 0 OR _1 < 0 OR _1 > 0")
    row = text.encode() + b",x\n"
    kept = [
        engine.select(make_plan(Query(Dialect(), "no", requested=Selection(None, condition)), None), row)
        for engine in (arrow, plain)
    ]
    assert kept == [row if number is not None else b""] * 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5), ("-007", -7), ("+5", 5.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1e999", math.inf),
        ("123456789012345678", 123456789012345678), ("1234567890123456789", 1234567890123456789.0),
        ("", None), (" 5", None), ("5 ", None), ("1_0", None), ("0x10", None), ("inf", None), ("nan", None),
        ("٥", None),
    ],
)  # fmt: skip
def test_numbers_are_recognised(text, number):
    assert parse_number(text.encode()) == number
    assert type(parse_number(text.encode())) is type(number)


def test_whole_numbers_are_compared_exactly():
    text = b"9007199254740992\n9007199254740993\n9007199254740993.0\n"
    query = Query(Dialect(), "no", requested=Selection(None, parse("_1 = 9007199254740993 AND _1 != 9007199254740992")))
    assert run(CsvStream(query), [text]) == b"9007199254740993\n"


@pytest.mark.parametrize(
    ("like", "text", "expected"),
    [
        ("a%", "abc", True), ("a%", "bac", False), ("%c", "abc", True), ("%b%", "abc", True), ("abc", "abc", True),
        ("a_c", "aéc", True), ("a_c", "abbc", False), ("%a%b%", "xaxbx", True), ("%a%b%", "xbxax", False),
        ("%", "", True), ("_%", "", False), ("a.c", "abc", False), ("%ab", "aab", True), ("a%a", "a", False),
    ],
)  # fmt: skip
def test_like_patterns_match_as_in_sql(like, text, expected):
    assert compile_pattern(like.encode()).matches(text.encode()) is expected


def test_a_long_record_that_has_no_end_costs_little_memory():
    for text in (b'"x",' * 100_000, b'"' + b'""' * 200_000, b"a," * 200_000 + b'"'):
        tracemalloc.start()
        try:
            assert Dialect().complete(text) == 0
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < (len(text) // 4 if POSSESSIVE else 100 * len(text))  # other threads may allocate, too


def test_like_does_not_backtrack_without_end():
    assert not compile_pattern(b"%a" * 40 + b"%b").matches(b"a" * 20_000)
