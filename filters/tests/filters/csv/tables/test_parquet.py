"""csv_to_parquet: pyarrow reads the table from the result."""

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from sluice_filters.api import FilterError, Hint
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.tables import parquet as csv_to_parquet
from sluice_filters.csv.tables.parquet import CsvToParquet
from sluice_filters.testing import cut, run


@pytest.fixture
def short_groups(monkeypatch):
    """Groups of 64 bytes, so that a table has many."""
    made = csv_to_parquet._Groups

    def reader(self, hint):
        return made(self.dialect, self.params["header"] == "yes", self.params["types"] == "infer", 64)

    monkeypatch.setattr(CsvToParquet, "reader", reader)


def convert(data, size=7, **params):
    return run(CsvToParquet(params).reader(Hint()), cut(data, size))


def table(data, **params):
    return parquet.read_table(io.BytesIO(convert(data, **params)))


def test_columns_have_the_types_of_their_values():
    found = table(b'id,price,day,name,gone\n1,2.5,2026-11-01,"a ""b"",\nc",NA\n2,,2026-11-02,,\n')
    assert found.schema.field("id").type == pa.int64()
    assert found.schema.field("day").type == pa.date32()
    assert found.column("gone").to_pylist() == ["NA", ""]
    assert found.column("price").to_pylist() == [2.5, None]
    assert found.column("name").to_pylist() == ['a "b",\nc', ""]


def test_text_is_what_it_is():
    found = table(b"\xef\xbb\xbfid;n\r\n007;NA\r\n", types="text", delimiter=";")
    assert found.to_pydict() == {"id": ["007"], "n": ["NA"]}
    assert table(b"1,x\n2,y", header="no").to_pydict() == {"_1": [1, 2], "_2": ["x", "y"]}


@pytest.mark.usefixtures("short_groups")
def test_groups_become_row_groups_of_one_table():
    data = b"id,name\n" + b"".join(b'%d,"%s"\n' % (number, b"line\n" * (number % 30)) for number in range(100))
    made = convert(data)
    found = parquet.ParquetFile(io.BytesIO(made))
    assert found.num_row_groups > 20
    assert found.read().column("name").to_pylist() == ["line\n" * (number % 30) for number in range(100)]
    assert all(convert(data, size) == made for size in (1, 63, 64, 65, len(data)))


@pytest.mark.usefixtures("short_groups")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text('ab,"\n é', max_size=20), st.text("xy ", max_size=9)), min_size=1, max_size=40))
def test_any_values_come_back(rows):
    dialect = Dialect()
    lines = [b",".join(dialect.quoted(value.encode(), always=True) for value in row) + b"\n" for row in rows]
    found = table(b"first,second\n" + b"".join(lines), types="text")
    assert list(zip(*found.to_pydict().values(), strict=True)) == rows


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"a,b\n1,2\n3\n", "a record behind 0 does not have 2 fields"),
        (b"a,a\n1,2\n", "two columns are called `a`"),
        (b"a\n" + b"1\n" * 31 + b"x\n" * 31, "column `a` begins with values of type int64 and has another one"),
        (b"a\n\xff\xfe\n", "column `a` holds what is no UTF-8"),
        (b"a\nx\ry\n", "quotes or line ends that it cannot read"),
        (b'a,b\n"x,1\n', "a record behind 0 does not have 2 fields"),
    ],
)
@pytest.mark.usefixtures("short_groups")
def test_what_is_no_table_is_refused(data, fault):
    with pytest.raises(FilterError, match=fault):
        convert(data, types="text" if b"\xff" in data else "infer")


def test_a_table_of_no_records_has_columns_and_nothing_is_nothing():
    assert table(b"a,b\n").to_pydict() == {"a": [], "b": []}
    assert convert(b"") == convert(b"\n\n") == b""
