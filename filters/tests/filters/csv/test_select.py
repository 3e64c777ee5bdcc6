"""csv_select as a filter: requests, policies, and output."""

import re
from pathlib import Path

import pytest

from sluice_filters.api import BadParameter, FilterError, Hint
from sluice_filters.csv.dialect import Dialect
from sluice_filters.csv.query import MOST_ADDED, Query
from sluice_filters.csv.select import CsvSelect
from sluice_filters.csv.stream import LONGEST, CsvStream
from sluice_filters.testing import cut, run

PAGE = Path(__file__).parents[4] / "docs" / "admin" / "filters" / "csv.md"
PEOPLE = b'id,name,city,age\n1,Ada,"London, UK",36\n2,Grace,New York,85\n3,"Edsger ""E""",Austin,72\n4,Anonymous,,\n'


def asked(select="", byte_range="", size=None):
    wishes = {"X-Csv-Select": select, "X-Csv-Range": byte_range}
    return Hint(size=size, asked={name: value for name, value in wishes.items() if value})


def read(wish="", data=PEOPLE, size=5, byte_range="", **params):
    stream = CsvSelect(params).reader(asked(wish, byte_range))
    return run(stream, cut(data, size)).decode()


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("columns=name,id", 'name,id\nAda,1\nGrace,2\n"Edsger ""E""",3\nAnonymous,4\n'),
        ("columns=_2,_1; header=ignore", 'Ada,1\nGrace,2\n"Edsger ""E""",3\nAnonymous,4\n'),
        ("where=age > 40", 'id,name,city,age\n2,Grace,New York,85\n3,"Edsger ""E""",Austin,72\n'),
        ("where=city = 'London, UK'; columns=city", 'city\n"London, UK"\n'),
        ("columns=id;where=name = 'Edsger \"E\"'", "id\n3\n"),
        ("columns=id; where=age IS NULL", "id\n4\n"),
        ("columns=id; where=NOT age > 40", "id\n1\n"),
        ("columns=ID; where=AGE BETWEEN 36 AND 72", "id\n1\n3\n"),
        ("columns=id; where=city LIKE '%;%' OR id IN (2, 4)", "id\n2\n4\n"),
        ("columns=_1,_9; where=_1 = 2; header=no", "2,\n"),
        ("where=1 = 2", "id,name,city,age\n"),
    ],
)
def test_a_request_selects_columns_and_rows(wish, expected):
    assert read(wish) == expected


def test_the_request_of_the_page_selects_what_it_says():
    (wish,) = re.findall(r'-H "X-Csv-Select: (.*)"', PAGE.read_text(encoding="utf-8"))
    data = b"time,meter,kwh\n1,m7,9\n2,m7,11\n3,m8,12\n"
    assert read(wish, data) == "time,kwh\n2,11\n"


def test_without_a_request_nothing_changes():
    one = CsvSelect()
    assert not one.reads(Hint())
    assert one.reads(asked("columns=id"))
    assert one.reads(asked(byte_range="bytes=0-5"))
    assert CsvSelect({"columns": "id"}).reads(Hint())


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("columns=nmae", ["`nmae`", "did you mean `name`", "id, name, city, age"]),
        ("where=agee > 4", ["`agee`", "`age`"]),
        ("columns=", ["`columns`"]),
        ("columns=a,,b", ["`columns`"]),
        ("columns=id,name,_1", ["`id`", "twice"]),
        ("colums=a", ["`colums`", "`columns`"]),
        ("columns=id; columns=id", ["twice"]),
        ("where=age >", ["it ends", "expected a column"]),
        ("where=age > > 4", ["`>`"]),
        ("where=age = 'x' AND", ["it ends"]),
        ("where=age = 'x", ["not closed"]),
        ("where=CAST(age AS DATE) = 4", ["`DATE`", "INT"]),
        ("where=CAST(age AS INT) = 'x'", ["`x`", "number"]),
        ("where=age LIKE 5", ["`5`", "single quotes"]),
        ("where=" + "(" * 100 + "age=1" + ")" * 100, ["deeper"]),
        ("where=" + "CAST(" * 100 + "age", ["deeper"]),
        ("header=maybe", ["`maybe`", "yes, no, ignore"]),
        ("header=no; columns=name", ["_1"]),
        ("delimiter=ab", ["`ab`", "one ASCII character"]),
        ("multiline=perhaps", ["`perhaps`"]),
    ],
)
def test_an_invalid_request_is_refused_with_the_near_miss(wish, words):
    with pytest.raises(BadParameter) as refused:
        read(wish)
    assert all(word in str(refused.value) for word in words), refused.value


@pytest.mark.parametrize("text", ["0-5", "bytes=-5", "bytes=9-5", "bytes=0-5,7-9", "lines=0-5"])
def test_a_range_in_another_form_is_refused(text):
    with pytest.raises(BadParameter, match="X-Csv-Range"):
        CsvSelect().reader(asked(byte_range=text))


class TestPolicySelection:
    """A client does not receive restricted columns and rows, for any request."""

    POLICY = {"columns": "id,age", "where": "age < 80"}

    def test_a_policy_applies_without_a_client_request(self):
        assert read(**self.POLICY) == "id,age\n1,36\n3,72\n"

    def test_a_request_narrows_the_selection_of_the_policy(self):
        assert read("columns=age; where=id > 1", **self.POLICY) == "age\n72\n"

    @pytest.mark.parametrize("wish", ["columns=id,name", "columns=_2", "where=name LIKE 'A%'", "where=_3 IS NULL"])
    def test_a_request_cannot_reach_or_guess_other_columns(self, wish):
        with pytest.raises(BadParameter) as refused:
            read(wish, **self.POLICY)
        assert "id, age" in str(refused.value)
        assert "city" not in str(refused.value)

    @pytest.mark.parametrize("wish", ["header=no", "header=ignore", "delimiter=tab", "quote=none", "multiline=no"])
    def test_a_client_cannot_change_the_dialect_of_a_policy(self, wish):
        with pytest.raises(BadParameter, match="set by the policy"):
            read(wish, **self.POLICY)

    def test_a_range_shows_no_other_rows_or_columns(self):
        first = read(byte_range="bytes=0-60", **self.POLICY)
        rest = read(byte_range="bytes=61-", **self.POLICY)
        assert first + rest == read(**self.POLICY)

    def test_an_object_without_the_column_is_refused_without_naming_others(self):
        for params in ({"columns": "salary"}, {"columns": "id", "where": "salary > 1"}):
            with pytest.raises(BadParameter, match="`salary`") as refused:
                read(**params)
            assert "city" not in str(refused.value)


@pytest.mark.parametrize(
    "params",
    [
        {"where": "a >"},
        {"columns": ",", "where": ""},
        {"columns": "a\nb"},
        {"columns": "a\rb"},
        {"columns": "a" * 200_000},
        {"delimiter": "ab"},
        {"quote": ","},
        {"header": "no", "columns": "a"},
        {"header": "ignore", "where": "a = 1"},
        {"header": "perhaps"},
    ],
)
def test_a_policy_that_cannot_work_is_refused(params):
    with pytest.raises(BadParameter):
        CsvSelect(params)


def test_reading_begins_one_byte_before_the_range_where_lines_are_records():
    one = CsvSelect({"multiline": False})
    assert one.span(asked("columns=_1", "bytes=100-199", size=1000)) == (99, None)
    assert one.span(asked("columns=_1", "bytes=0-199", size=1000)) is None
    assert one.span(asked("columns=id", "bytes=100-199", size=1000)) is None, "the header is needed"
    assert one.span(asked("columns=_1", "bytes=5000-", size=1000)) == (999, None)
    assert CsvSelect().span(asked("columns=_1", "bytes=100-199", size=1000)) is None, "a quote may have been opened"


def test_ranges_partition_the_records_and_stop_reading():
    lines = [b"%d,x\r\n" % number for number in range(1000)]
    data = b"".join(lines)
    one = CsvSelect({"multiline": False, "header": "no"})
    found = []
    for first in range(0, len(data), 777):
        hint = asked("columns=_1", f"bytes={first}-{first + 776}", size=len(data))
        span = one.span(hint)
        stream = one.reader(hint)
        out = b""
        fed = 0
        for piece in cut(data[span[0] if span else 0 :], 100):
            out += stream.feed(piece)
            fed += len(piece)
            if stream.done:
                break
        found.append(out + stream.finish())
        assert fed <= 1000, "it reads to the end of its last record, no further"
    assert b"".join(found) == b"".join(b"%d\n" % number for number in range(1000))


def test_a_record_that_never_ends_costs_bounded_memory():
    stream = CsvStream(Query(Dialect(), header="no"))
    with pytest.raises(FilterError, match="never closed"):
        run(stream, [b'"', *([b"x" * (1 << 20)] * (2 * (LONGEST >> 20) + 2))])


@pytest.mark.parametrize(
    ("irregular_line", "rows", "limit"),
    [(b"", 40_000, MOST_ADDED), (b"x,y\n", 1500, 1 << 20)],
    ids=["vectorised", "plain, with a lower limit"],
)
def test_a_short_request_does_not_make_much_out_of_little(irregular_line, rows, limit, monkeypatch):
    monkeypatch.setattr("sluice_filters.csv.query.MOST_ADDED", limit)
    columns = ",".join(f"_{number}" for number in range(2, 1002))
    with pytest.raises(FilterError, match="larger than the object"):
        read(f"header=no; columns={columns}", irregular_line + b"x\n" * rows, size=1 << 20)


def test_names_of_a_header_in_utf_8_arrive_as_a_header_field():
    data = "größe,länge\n1,2\n".encode()
    wish = "columns=größe".encode().decode("latin-1")
    assert read(wish, data) == "größe\n1\n"


def test_other_dialects():
    assert read("columns=b;delimiter=tab", b"a\tb\n1\t2,3\n") == "b\n2,3\n"
    assert read("columns=b;delimiter=semicolon;quote=single", b"a;b\n1;'2;3'\n") == "b\n'2;3'\n"
    assert read("columns=_2;quote=none;header=no", b'a,"b,c"\n') == '"b\n'


def test_a_byte_order_mark_is_no_part_of_a_name():
    assert read("columns=a", b"\xef\xbb\xbfa,b\n1,2\n", size=1) == "a\n1\n"
