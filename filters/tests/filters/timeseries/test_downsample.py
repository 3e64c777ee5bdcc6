"""downsample and upsample: rows in, fewer or more rows out, the same for every split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import BadParameter, FilterError, Hint
from sluice_filters.testing import cut, run
from sluice_filters.timeseries import downsample
from sluice_filters.timeseries.downsample import Downsample
from sluice_filters.timeseries.upsample import Upsample

METERS = (
    b"time,meter,kwh,street\n"
    b"2026-11-01T00:00:00,a,1,Main\n"
    b"2026-11-01T00:15:00,b,10,Side\n"
    b"2026-11-01T00:30:00,a,2,Main\n"
    b"2026-11-01T00:45:00,a,broken,Main\n"
    b"no time,a,1000,Main\n"
    b"2026-11-01T01:00:00,a,5,Main\n"
    b"2026-11-01T02:59:59.5,b,,Side\n"
)
HOURLY = {"time": "time", "interval": 3600, "keys": "meter", "values": "kwh"}


def read(one, data, size=7):
    return run(one.reader(Hint()), cut(data, size)).decode()


@pytest.mark.parametrize(
    ("extra", "rows"),
    [
        ({}, ["00:00:00,a,1.5", "00:00:00,b,10", "01:00:00,a,5", "02:00:00,b,"]),
        ({"aggregate": "sum"}, ["00:00:00,a,3", "00:00:00,b,10", "01:00:00,a,5", "02:00:00,b,"]),
        ({"aggregate": "min"}, ["00:00:00,a,1", "00:00:00,b,10", "01:00:00,a,5", "02:00:00,b,"]),
        ({"aggregate": "max"}, ["00:00:00,a,2", "00:00:00,b,10", "01:00:00,a,5", "02:00:00,b,"]),
        ({"digits": 0}, ["00:00:00,a,2", "00:00:00,b,10", "01:00:00,a,5", "02:00:00,b,"]),
    ],
)
def test_rows_are_averaged_per_interval_and_key(extra, rows):
    expected = "time,meter,kwh\n" + "".join(f"2026-11-01T{row}\n" for row in rows)
    assert read(Downsample({**HOURLY, **extra}), METERS) == expected
    assert read(Downsample({**HOURLY, **extra, "order": "none"}), METERS) == expected


def test_without_keys_there_is_one_series():
    data = b"t,v\n0,1\n30,3\n60,5\n"
    assert read(Downsample({"time": "t", "interval": 60, "values": "v"}), data) == "t,v\n0,2\n60,5\n"


@pytest.mark.parametrize(
    ("params", "data", "expected"),
    [
        ({"unit": "ms"}, b"t,v\n61500,1\n", "60000,1"),
        ({"interval": 0.5}, b"t,v\n61.75,1\n", "61.5,1"),
        ({}, b"t,v\n-30,1\n", "-60,1"),
        ({}, b"t,v\n2026-11-01 10:20:30+02:00,1\n", "2026-11-01 10:20:00+02:00,1"),
        ({}, b"t,v\n2026-11-01T10:20:30Z,1\n", "2026-11-01T10:20:00Z,1"),
        ({}, b't,v\n"2026-11-01T10:20:30Z","1"\n', "2026-11-01T10:20:00Z,1"),
    ],
)
def test_times_are_written_as_they_were(params, data, expected):
    assert read(Downsample({"time": "t", "interval": 60, "values": "v", **params}), data) == f"t,v\n{expected}\n"


def test_a_row_out_of_order_cuts_the_answer_instead_of_showing_itself():
    data = b"t,v\n100,1\n10,42\n"
    with pytest.raises(FilterError, match="order=none"):
        read(Downsample({"time": "t", "interval": 60, "values": "v"}), data)
    ordered = Downsample({"time": "t", "interval": 60, "values": "v", "order": "none"})
    assert read(ordered, b"t,v\n100,1\n10,42\n110,3\n") == "t,v\n60,2\n0,42\n"


def test_memory_is_bounded_by_groups(monkeypatch):
    monkeypatch.setattr(downsample, "LARGEST", 3)
    rows = b"t,k,v\n" + b"".join(b"0,%d,1\n" % key for key in range(4))
    with pytest.raises(FilterError, match="3 series"):
        read(Downsample({"time": "t", "interval": 60, "keys": "k", "values": "v"}), rows)


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"time": "t", "interval": 60}, "values"),
        ({"time": "t", "interval": 60, "values": "t"}, "twice"),
        ({"time": "t", "interval": 0, "values": "v"}, "interval"),
        ({"time": "t", "interval": 60, "values": "v", "unit": "h"}, "unit"),
        ({"time": "t", "interval": 60, "values": "v", "aggregate": "median"}, "median"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, word):
    with pytest.raises(BadParameter, match=word):
        Downsample(params)


def test_an_object_without_the_column_is_refused_with_the_near_miss():
    with pytest.raises(BadParameter, match="did you mean `kwh`"):
        read(Downsample({**HOURLY, "values": "kwhs"}), METERS)


def test_an_empty_object_stays_empty():
    assert read(Downsample(HOURLY), b"") == ""
    assert read(Upsample(HOURLY), b"") == ""


def test_upsample_puts_rows_on_the_line_between_two():
    data = b"t,k,v,note\n0,a,0,x\n0,b,5,y\n30,a,3,z\n60,b,oops,w\n"
    one = Upsample({"time": "t", "interval": 10, "keys": "k", "values": "v"})
    expected = (
        "t,k,v,note\n0,a,0,x\n0,b,5,y\n10,a,1,x\n20,a,2,x\n30,a,3,z\n"
        "10,b,5,y\n20,b,5,y\n30,b,5,y\n40,b,5,y\n50,b,5,y\n60,b,oops,w\n"
    )
    assert read(one, data) == expected


def test_upsample_leaves_long_gaps_and_rows_without_time_alone():
    data = b"t,v\n0,0\nnever,7\n1000,1\n995,2\n"
    one = Upsample({"time": "t", "interval": 10, "values": "v", "most": 98})
    assert read(one, data) == data.decode()
    filled = read(Upsample({"time": "t", "interval": 10, "values": "v", "most": 99}), data)
    assert filled.count("\n") == data.count(b"\n") + 99


@given(
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from("ab"), st.integers(0, 9)), max_size=20), st.integers(1, 40)
)
def test_no_cut_changes_the_output(rows, size):
    data = b"t,k,v\n" + b"".join(b'%d,"%s",%d\r\n' % (time, key.encode(), value) for time, key, value in sorted(rows))
    for kind, params in itertools.product((Downsample, Upsample), ({"keys": "k"}, {"keys": "k", "multiline": False})):
        one = kind({"time": "t", "interval": 60, "values": "v", **params})
        assert read(one, data, size) == read(one, data, len(data))
