"""The conditions of Spark's filters, without Spark running."""

import pytest
from pyspark.sql import datasource as ds
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from sluice_spark import SluiceReadError, table
from sluice_spark.options import Options
from sluice_spark.pushdown import condition
from sluice_spark.source import Wish, form, records

TYPES = {"s": StringType(), "n": LongType(), "d": DoubleType(), "f": FloatType(), "b": BooleanType()}
NAMES = {name: f"_{place + 1}" for place, name in enumerate(TYPES)}
GIVEN = {"path": "box/a.csv", "url": "http://store/v1/a", "token": "t"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ds.EqualTo(("s",), "it's"), "_1 = 'it''s'"),
        (ds.EqualNullSafe(("n",), 5), "_2 = 5"),
        (ds.EqualNullSafe(("n",), None), None),
        (ds.GreaterThan(("n",), -5), "_2 > -5"),
        (ds.LessThanOrEqual(("d",), 2.5), "_3 <= 2.5"),
        (ds.LessThan(("d",), 1e20), None),
        (ds.LessThan(("n",), 1 << 60), None),
        (ds.EqualTo(("f",), 0.1), None),
        (ds.EqualTo(("b",), True), None),
        (ds.EqualTo(("n",), True), None),
        (ds.EqualTo(("s",), "a\nb"), None),
        (ds.EqualTo(("elsewhere",), 1), None),
        (ds.EqualTo(("s", "inner"), "x"), None),
        (ds.In(("n",), (1, None, 3)), "_2 IN (1, 3)"),
        (ds.In(("n",), (1, 1 << 60)), None),
        (ds.IsNotNull(("b",)), "_5 IS NOT NULL"),
        (ds.IsNull(("s",)), None),
        (ds.Not(ds.EqualTo(("s",), "x")), "NOT (_1 = 'x')"),
        (ds.Not(ds.IsNotNull(("n",))), None),
        (ds.Not(ds.EqualTo(("f",), 1.0)), None),
        (ds.StringStartsWith(("s",), "50%_!"), "_1 LIKE '50!%!_!!%' ESCAPE '!'"),
        (ds.StringEndsWith(("s",), "x"), "_1 LIKE '%x' ESCAPE '!'"),
        (ds.StringContains(("s",), "x"), "_1 LIKE '%x%' ESCAPE '!'"),
    ],
)
def test_a_filter_becomes_a_condition_or_is_left_to_spark(given, expected):
    assert condition(given, TYPES, NAMES) == expected


def test_a_select_header_names_columns_by_position_and_stays_short():
    options = Options.parse({**GIVEN, "where": "_1 = 'x' OR _2 = 1"})
    wish = Wish(options, ["a", "b", "c"], ["c", "a"])
    assert wish.text(["_3 > 1"]) == "columns=_3,_1; multiline=no; where=(_1 = 'x' OR _2 = 1) AND (_3 > 1)"
    assert len(wish.text([f"_3 = {number}" for number in range(10_000)])) < 8000


def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are():
    with pytest.raises(SluiceReadError, match="`z`: there are a, b"):
        Wish(Options.parse(GIVEN), ["a", "b"], ["z"])


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, ["multiline=no"]),
        ({"multiLine": "true"}, []),
        (
            {"header": "false", "delimiter": "\t", "quote": "'"},
            ["header=no", "multiline=no", "delimiter=tab", "quote=single"],
        ),
        ({"DELIMITER": ";", "quote": ""}, ["multiline=no", "delimiter=semicolon", "quote=none"]),
    ],
)
def test_the_form_of_the_objects_is_said_where_it_is_not_the_usual(given, parts):
    assert form(Options.parse({**GIVEN, **given})) == parts


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"path": ""}, "no path"),
        ({"token": ""}, "auth_url"),
        ({"colums": "a"}, "`colums`"),
        ({"header": "yes"}, "true or false"),
        ({"partitionBytes": "12"}, "1024"),
        ({"partitionBytes": "x"}, "`x`"),
    ],
)
def test_options_that_make_no_sense_are_refused(given, word):
    with pytest.raises(SluiceReadError, match=word):
        Options.parse({**GIVEN, **given})


SCHEMA = StructType([StructField(name, kind) for name, kind in TYPES.items()])


def test_texts_become_values_and_invalid_ones_null():
    data = b'x,1,1.5,.5,TRUE\n"",+2,1e3,x,no\n,,,,\n"a,""b",99999999999999999999,7,7,false\n'
    rows = [
        row for batch in table.batches(table.texts(data, list(TYPES), ",", '"'), SCHEMA) for row in batch.to_pylist()
    ]
    assert [tuple(row.values()) for row in rows] == [
        ("x", 1, 1.5, 0.5, True),
        (None, 2, 1000.0, None, None),
        (None, None, None, None, None),
        ('a,"b', None, 7.0, 7.0, False),
    ]


def test_no_records_are_no_rows():
    assert sum(batch.num_rows for batch in table.batches(table.texts(b"", list(TYPES), ",", '"'), SCHEMA)) == 0


def test_types_are_guessed_from_a_sample():
    sample = table.texts(b"1,1.5,true,x,\n2,3,False,1,\n", list("abcde"), ",", '"')
    assert [field.dataType.simpleString() for field in table.guess(sample)] == [
        "bigint",
        "double",
        "boolean",
        "string",
        "string",
    ]


def test_a_type_that_is_not_read_is_refused():
    with pytest.raises(SluiceReadError, match="date, expected one of string"):
        table.check(StructType([StructField("day", DateType())]))


def test_the_first_record_may_hold_line_ends():
    assert records(b'a,"b\nc"\n1,2\n', '"') == (b'a,"b\nc"\n', b"1,2\n")
    assert records(b"a,b", '"') == (b"a,b", b"")
