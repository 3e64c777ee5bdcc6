"""Rows that are read from their bytes equal the unpacked rows."""

import math

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import flow_row, flow_stat, node_load

from sluice_actors.bandwidth.loads import node_loads
from sluice_actors.bandwidth.loads.decoder import PackedNodeLoad, PackedRows
from sluice_actors.bandwidth.loads.flow_index import METHOD_SIDES
from sluice_actors.bandwidth.loads.node_loads import NodeLoads
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
    """All values of the node, by flow."""
    node, names = loads.nodes["n"], loads.flow_index
    stats = {
        (place % METHOD_SIDES, names.flows[place // METHOD_SIDES]): tuple(node.stats.values[:, at].tolist())
        for at, place in enumerate(node.stats.flow_sides.tolist())
    }
    told = sorted(zip(map(names.key, node.rows.numbers.tolist()), node.rows.moved.tolist(), strict=True))
    return stats, told, loads.unsound, node.served_sides


@given(st.lists(st.one_of(rows(SOUND), rows(NUMBERS)), min_size=1, max_size=4))
def test_rows_read_by_their_bytes_equal_unpacked_rows(seconds):
    plain, quick = NodeLoads(), NodeLoads()
    for number, told in enumerate((*seconds, seconds[0], seconds[0]), 1):
        plain.feed(node_load("n", number, *told), float(number))
        quick.feed(PackedNodeLoad.decode(node_load("n", number, *told).encode()), float(number))
        (stats, *others), (expected, *same) = known(quick), known(plain)
        assert others == same
        assert stats.keys() == expected.keys()
        assert all(stats[place] == pytest.approx(expected[place]) for place in stats)


def test_known_rows_are_not_unpacked_again(monkeypatch):
    loads, told = NodeLoads(), (flow_row("a", 1), flow_row("b", 2, STORAGE_NODE, device="sdb1"))
    loads.feed(PackedNodeLoad.decode(node_load("n", 1, *told).encode()), 1.0)
    unpacked = []
    get = PackedRows.__getitem__
    monkeypatch.setattr(PackedRows, "__getitem__", lambda self, place: unpacked.append(place) or get(self, place))
    loads.feed(PackedNodeLoad.decode(node_load("n", 2, told[1], flow_row("c", 3), told[0]).encode()), 2.0)
    assert unpacked == [1]
    assert {flow_stat(loads, "n", PROXY, Flow(name, GET)).moved for name in "ac"} == {1e6, 3e6}


def test_rows_are_known_after_flows_are_renumbered(monkeypatch):
    monkeypatch.setattr(node_loads, "_MAX_OVER", 3)
    loads = NodeLoads()
    for number, names in enumerate(("abcdefgh", "h", "h", "h", "h"), 1):
        loads.feed(
            PackedNodeLoad.decode(node_load("n", number, *(flow_row(name, 1) for name in names)).encode()),
            float(number),
        )
    assert loads.forget(5.0) is not None
    assert loads.flow_index.flows == [Flow("h", GET)]
    loads.feed(PackedNodeLoad.decode(node_load("n", 6, flow_row("h", 7), flow_row("a", 2)).encode()), 6.0)
    assert flow_stat(loads, "n", PROXY, Flow("h", GET)).moved == 7e6
    assert flow_stat(loads, "n", PROXY, Flow("a", GET)).moved == 2e6
    assert len(loads.nodes["n"].stats.flow_sides) == 2


@pytest.mark.parametrize("single", [True, False])
def test_numbers_in_other_encodings_are_read(single):
    loads, data = NodeLoads(), node_load("n", 1, flow_row("a", 1), flow_row("b", 2)).to_data()
    data["rows"] = [[*one[:6], 8.0 if single else 8, 4.0, 0.0] for one in data["rows"]]
    body = msgpack.packb({"v": 1, **data}, use_single_float=single)
    for second in (1, 2):
        loads.feed(
            PackedNodeLoad.decode(body.replace(b"\xa6number\x01", b"\xa6number" + bytes((second,)))), float(second)
        )
    assert loads.repeated == loads.unsound == 0
    assert flow_stat(loads, "n", PROXY, Flow("b", GET))[:3] == (8.0, 4.0, 0.0)


def test_a_name_that_is_not_utf8_refuses_the_message_alone():
    loads = NodeLoads()
    assert loads.feed(PackedNodeLoad.decode(node_load("n", 1, flow_row("a", 1)).encode()), 1.0)
    broken = node_load("n", 2, flow_row("a", 1), flow_row("bb", 2)).encode().replace(b"\xa2bb", b"\xa2\xff\xff")
    with pytest.raises(ValueError, match="utf-8"):
        loads.feed(PackedNodeLoad.decode(broken), 2.0)
    assert loads.nodes["n"].number == 1
    assert loads.feed(PackedNodeLoad.decode(node_load("n", 2, flow_row("a", 5)).encode()), 2.1)


@pytest.mark.parametrize("spoil", [lambda body: body[:-3], lambda body: body + b"\x01", lambda body: b"\x93" + body])
def test_invalid_messages_are_refused(spoil):
    body = node_load("n", 1, flow_row("a", 1)).encode()
    with pytest.raises(DecodeError) as refused:
        PackedNodeLoad.decode(spoil(body))
    assert refused.value.raw == spoil(body)


@pytest.mark.parametrize("told", [[1], [["proxy"]], "abc", None, [[PROXY, "a", "", GET, 0, "", 1.0, 1.0, 0.0, 5]]])
def test_invalid_lists_of_rows_are_refused(told):
    data = {"v": 1, **node_load("n", 1).to_data(), "rows": told}
    with pytest.raises(DecodeError):
        PackedNodeLoad.decode(msgpack.packb(data))


def test_another_version_is_refused():
    data = {**node_load("n", 1, flow_row("a", 1)).to_data(), "v": 2}
    with pytest.raises(DecodeError, match="version"):
        PackedNodeLoad.decode(msgpack.packb(data))


def test_errors_keep_the_bytes_and_reports_encode_again():
    raw = node_load("n1", 1, flow_row("a", 3.0)).encode()
    assert PackedNodeLoad.decode(raw).encode() == raw
    broken = msgpack.packb({**msgpack.unpackb(raw), "capacity": {"proxy": {GET: -1.0}}})
    with pytest.raises(DecodeError, match="capacity") as caught:
        PackedNodeLoad.decode(broken)
    assert caught.value.raw == broken
