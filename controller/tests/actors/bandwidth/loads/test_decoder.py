"""Rows that are read by their bytes say what they say unpacked."""

import math

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import load, row

from sluice_actors.bandwidth.loads import table
from sluice_actors.bandwidth.loads.decoder import Packed
from sluice_actors.bandwidth.loads.flow_index import KINDS
from sluice_actors.bandwidth.loads.table import Loads, Report
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, PUT, Flow, Load

NUMBERS = st.one_of(st.floats(0, 1e9), st.integers(0, 1000), st.sampled_from([-1.0, math.nan, 1e300, None, "1"]))
SOUND = st.floats(0, 1e9)


def rows(numbers):
    return st.lists(
        st.builds(
            Load,
            st.sampled_from([PROXY, STORAGE_NODE]),
            st.text(max_size=2, alphabet="aé\u02c0"),
            st.sampled_from(["", "c"]),
            st.sampled_from([GET, PUT, "POST"]),
            st.integers(0, 300),
            st.sampled_from(["", "sdb1", "x" * 40]),
            *[numbers] * 3,
        ),
        max_size=8,
    ).map(tuple)


def known(loads):
    """All that is known of the node, by flow."""
    node, names = loads.nodes["n"], loads.names
    traces = {
        (place % KINDS, names.flows[place // KINDS]): tuple(node.traces.find(place))
        for place in node.traces.places.tolist()
    }
    told = sorted(zip(map(names.key, node.rows.numbers.tolist()), node.rows.moved.tolist(), strict=True))
    return traces, told, loads.unsound, node.here


@given(st.lists(st.one_of(rows(SOUND), rows(NUMBERS)), min_size=1, max_size=4))
def test_rows_are_the_same_by_their_bytes_and_unpacked(seconds):
    plain, quick = Loads(), Loads()
    for number, told in enumerate((*seconds, seconds[0], seconds[0]), 1):
        plain.feed(load("n", number, *told), float(number))
        quick.feed(Report.decode(load("n", number, *told).encode()), float(number))
        (traces, *others), (expected, *same) = known(quick), known(plain)
        assert others == same
        assert traces.keys() == expected.keys()
        assert all(traces[place] == pytest.approx(expected[place]) for place in traces)


def test_known_rows_are_not_unpacked_again(monkeypatch):
    loads, told = Loads(), (row("a", 1), row("b", 2, STORAGE_NODE, device="sdb1"))
    loads.feed(Report.decode(load("n", 1, *told).encode()), 1.0)
    unpacked = []
    get = Packed.__getitem__
    monkeypatch.setattr(Packed, "__getitem__", lambda self, place: unpacked.append(place) or get(self, place))
    loads.feed(Report.decode(load("n", 2, told[1], row("c", 3), told[0]).encode()), 2.0)
    assert unpacked == [1]
    assert {loads.trace("n", PROXY, Flow(name, GET)).moved for name in "ac"} == {1e6, 3e6}


def test_rows_are_known_by_their_new_numbers(monkeypatch):
    monkeypatch.setattr(table, "_OVER", 3)
    loads = Loads()
    for number, names in enumerate(("abcdefgh", "h", "h", "h", "h"), 1):
        loads.feed(Report.decode(load("n", number, *(row(name, 1) for name in names)).encode()), float(number))
    assert loads.forget(5.0) is not None
    assert loads.names.flows == [Flow("h", GET)]
    loads.feed(Report.decode(load("n", 6, row("h", 7), row("a", 2)).encode()), 6.0)
    assert loads.trace("n", PROXY, Flow("h", GET)).moved == 7e6
    assert loads.trace("n", PROXY, Flow("a", GET)).moved == 2e6
    assert len(loads.nodes["n"].traces.places) == 2


@pytest.mark.parametrize("single", [True, False])
def test_numbers_may_be_written_otherwise(single):
    loads, data = Loads(), load("n", 1, row("a", 1), row("b", 2)).to_data()
    data["rows"] = [[*one[:6], 8.0 if single else 8, 4.0, 0.0] for one in data["rows"]]
    body = msgpack.packb({"v": 1, **data}, use_single_float=single)
    for second in (1, 2):
        loads.feed(Report.decode(body.replace(b"\xa6number\x01", b"\xa6number" + bytes((second,)))), float(second))
    assert loads.repeated == loads.unsound == 0
    assert loads.trace("n", PROXY, Flow("b", GET))[:3] == (8.0, 4.0, 0.0)


def test_a_name_that_is_no_text_spoils_the_message_and_nothing_else():
    loads = Loads()
    assert loads.feed(Report.decode(load("n", 1, row("a", 1)).encode()), 1.0)
    broken = load("n", 2, row("a", 1), row("bb", 2)).encode().replace(b"\xa2bb", b"\xa2\xff\xff")
    with pytest.raises(ValueError, match="utf-8"):
        loads.feed(Report.decode(broken), 2.0)
    assert loads.nodes["n"].number == 1
    assert loads.feed(Report.decode(load("n", 2, row("a", 5)).encode()), 2.1)


@pytest.mark.parametrize("spoil", [lambda body: body[:-3], lambda body: body + b"\x01", lambda body: b"\x93" + body])
def test_what_is_no_message_is_refused(spoil):
    body = load("n", 1, row("a", 1)).encode()
    with pytest.raises(DecodeError) as refused:
        Report.decode(spoil(body))
    assert refused.value.raw == spoil(body)


@pytest.mark.parametrize("told", [[1], [["proxy"]], "abc", None, [[PROXY, "a", "", GET, 0, "", 1.0, 1.0, 0.0, 5]]])
def test_what_are_no_rows_is_refused(told):
    data = {"v": 1, **load("n", 1).to_data(), "rows": told}
    with pytest.raises(DecodeError):
        Report.decode(msgpack.packb(data))


def test_another_version_is_refused():
    data = {**load("n", 1, row("a", 1)).to_data(), "v": 2}
    with pytest.raises(DecodeError, match="version"):
        Report.decode(msgpack.packb(data))


def test_an_error_keeps_the_bytes_and_what_was_read_can_be_written():
    raw = load("n1", 1, row("a", 3.0)).encode()
    assert Report.decode(raw).encode() == raw
    broken = msgpack.packb({**msgpack.unpackb(raw), "capacity": {"proxy": {GET: -1.0}}})
    with pytest.raises(DecodeError, match="capacity") as caught:
        Report.decode(broken)
    assert caught.value.raw == broken
