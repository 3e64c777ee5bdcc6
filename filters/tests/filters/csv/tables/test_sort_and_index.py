"""csv_sort and csv_index: whole tables in memory, sorted or as an index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import BadParameter, FilterError, Hint
from sluice_filters.csv.tables import table as tables
from sluice_filters.csv.tables.index import CsvIndex
from sluice_filters.csv.tables.sort import CsvSort
from sluice_filters.testing import cut, run

TABLE = b'n,city\n3,Bern\n"10","Biel, BE"\n2,"two\nlines"\nnone,Thun\n3,Aarau\n'


@pytest.fixture(params=[2, 20_000])
def parts(request, monkeypatch):
    """The number of records that are sorted at once."""
    monkeypatch.setattr(tables, "_PART", request.param)


def convert(one, data=TABLE, size=7):
    return run(one.reader(Hint()), cut(data, size))


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("params", "column"),
    [
        ({"by": "n", "compare": "number"}, b"2 3 3 10 none"),
        ({"by": "n", "compare": "number", "order": "descending"}, b"10 3 3 2 none"),
        ({"by": "n"}, b"10 2 3 3 none"),
        ({"by": "_1", "order": "descending"}, b"none 3 3 2 10"),
        ({}, b"10 2 3 3 none"),
    ],
)
def test_records_come_in_the_order_of_values(params, column):
    first, *records = CsvSort().dialect.records(convert(CsvSort(params)))
    assert first == b"n,city"
    assert [record.split(b",")[0].strip(b'"') for record in records] == column.split()


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.usefixtures("parts")
def test_equal_values_stay_in_their_order_and_later_columns_decide(order):
    one = convert(CsvSort({"by": "n", "compare": "number", "order": order}))
    assert one.index(b"3,Bern") < one.index(b"3,Aarau")
    both = convert(CsvSort({"by": "n,city", "order": order}))
    assert (both.index(b"3,Aarau") < both.index(b"3,Bern")) is (order == "ascending")


def test_without_a_header_the_first_record_is_sorted_too():
    assert convert(CsvSort({"header": "no", "by": "_1"}), b"\xef\xbb\xbfb\r\n\na\nc") == b"a\nb\nc\n"
    with pytest.raises(BadParameter, match="columns are called _1"):
        CsvSort({"header": "no", "by": "n"})


def test_an_index_says_where_records_are():
    index = CsvIndex({"column": "city"})
    heading, *rows = index.dialect.records(convert(index))
    assert heading == b"city,offset,length"
    found = {}
    for row in rows:
        value, begin, size = index.dialect.fields(row)
        found[index.dialect.value(value)] = TABLE[int(begin) : int(begin) + int(size)]
    assert found[b"Biel, BE"] == b'"10","Biel, BE"'
    assert found[b"two\nlines"] == b'2,"two\nlines"'
    assert list(found) == sorted(found)


@given(st.lists(st.text('ab,"\n\r', max_size=6), max_size=8))
def test_an_index_finds_every_record_of_any_text(lines):
    data = "\n".join(lines).encode()
    index = CsvIndex({"column": "_1", "header": "no"})
    rows = [index.dialect.fields(row)[-2:] for row in index.dialect.records(convert(index, data, 3))]
    places = sorted((int(begin), int(size)) for begin, size in rows)
    whole = data if data.endswith(b"\n") else data + b"\n"
    assert [whole[begin : begin + size] for begin, size in places] == list(index.dialect.records(whole))


@pytest.mark.parametrize("one", [CsvSort({"by": "town"}), CsvIndex({"column": "town"})])
def test_a_column_that_there_is_not_is_named_with_those_that_there_are(one):
    with pytest.raises(BadParameter, match="no column `town`: there are n, city"):
        convert(one)


def test_larger_objects_are_refused_before_they_are_held():
    stream = CsvSort({"max_size": 10}).reader(Hint())
    stream.feed(b"0123456789")
    with pytest.raises(FilterError, match="`csv_sort` takes objects of at most 10 bytes"):
        stream.feed(b"x")


@pytest.mark.parametrize("one", [CsvSort(), CsvIndex({"column": "n"})])
def test_empty_lines_are_no_table(one):
    assert convert(one, b"\n\n") == b""
