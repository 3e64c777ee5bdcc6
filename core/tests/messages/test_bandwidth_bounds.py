"""Numbers out of bounds are refused on arrival, by the name of their field."""

import math
import re

import pytest

from sluice_core.describe import PROXY
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, Load, MovedObject, NodeLoad, Share, Shares
from sluice_core.messages.credit import (
    Ask,
    CreditGrant,
    CreditRequest,
    Grant,
    PriorityUpdate,
    TrafficReport,
    TrafficSample,
    pack,
    unpack,
)

BAD = (math.nan, math.inf, -math.inf, -2.0, 1e21, "much", None)


def load(**fields):
    row = Load(PROXY, "a", "", GET, 0, "", 1.0, 1.0, 0.0)._replace(**fields)
    return NodeLoad("n", 1.0, 1.0, 1, rows=(row,))


def seen(**fields):
    one = MovedObject("sda", 0, "a", "c/o", GET, "0-end", 1.0)._replace(**fields)
    return NodeLoad("n", 1.0, 1.0, 1, objects=(one,))


def shares(**fields):
    row = Share(PROXY, "a", "", GET, 0, 1.0)._replace(**fields)
    return Shares("n", 1, 1, 0.0, (row,))


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("field", ["moved", "open", "waiting"])
def test_a_load_is_finite_and_none_is_negative(field, value):
    with pytest.raises(DecodeError, match=re.escape(f"`Load.{field}` is `{value!r}`")):
        NodeLoad.decode(load(**{field: value}).encode())


def test_what_a_node_may_have_moved_is_bounded():
    assert NodeLoad.decode(load(moved=1e15).encode()) == load(moved=1e15)
    with pytest.raises(DecodeError, match=r"`Load\.moved` is `2e\+16`, expected a number from 0 to 1e\+15"):
        NodeLoad.decode(load(moved=2e16).encode())


@pytest.mark.parametrize("value", BAD, ids=str)
def test_objects_and_capacities_as_well(value):
    with pytest.raises(DecodeError, match=r"`MovedObject\.rate`"):
        NodeLoad.decode(seen(rate=value).encode())
    with pytest.raises(DecodeError, match=r"`NodeLoad\.capacity\.proxy\.GET`"):
        NodeLoad.decode(NodeLoad("n", 1.0, 1.0, 1, capacity={PROXY: {GET: value}}).encode())


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("field", ["rate", "floor", "ceiling"])
def test_a_share_is_finite(field, value):
    with pytest.raises(DecodeError, match=rf"`Share\.{field}`"):
        Shares.decode(shares(**{field: value}).encode())


@pytest.mark.parametrize("rate", [-1.0, 0.0, -1e-12, 2.0**63])
def test_a_share_may_be_none_without_end_and_as_great_as_any_policy_says(rate):
    assert Shares.decode(shares(rate=rate).encode()) == shares(rate=rate)


@pytest.mark.parametrize("value", BAD, ids=str)
def test_rates_of_newcomers_and_spares_as_well(value):
    with pytest.raises(DecodeError, match=r"`Shares\.newcomer\.proxy\.GET`"):
        Shares.decode(Shares("n", 1, 1, 0.0, (), {PROXY: {GET: value}}).encode())
    with pytest.raises(DecodeError, match=r"`Shares\.spares\.h:1`"):
        Shares.decode(Shares("n", 1, 1, 0.0, (), {}, {"h:1": value}).encode())


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda value: Ask((CreditRequest("a", "", GET, 0, 1, value),)), "CreditRequest.waiting"),
        (lambda value: Ask((CreditRequest("a", "", GET, 0, 1, 0, value),)), "CreditRequest.ceiling"),
        (lambda value: Grant((CreditGrant("a", "", GET, 0, value, 1.0),)), "CreditGrant.size"),
        (lambda value: Grant((CreditGrant("a", "", GET, 0, 1, value),)), "CreditGrant.rate"),
        (
            lambda value: TrafficReport(1.0, (TrafficSample("a", "", GET, 0, "", value, 0.0, 0.0, 0, 0),)),
            "TrafficSample.moved",
        ),
        (
            lambda value: TrafficReport(1.0, (TrafficSample("a", "", GET, 0, "", 1, value, 0.0, 0, 0),)),
            "TrafficSample.busy",
        ),
        (
            lambda value: TrafficReport(1.0, (TrafficSample("a", "", GET, 0, "", 1, 0.0, 0.0, 0, value),)),
            "TrafficSample.waiting",
        ),
        (
            lambda value: TrafficReport(1.0, (), (MovedObject("sda", 0, "a", "o", GET, "0-end", value),)),
            "MovedObject.rate",
        ),
        (lambda value: PriorityUpdate((), True, {"h:1": value}), "PriorityUpdate.spares.h:1"),
        (lambda value: PriorityUpdate((), True, {}, {GET: value}), "PriorityUpdate.alone.GET"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_workers_and_agents_say_to_each_other_as_well(made, field, value):
    with pytest.raises(DecodeError, match=f"`{field}`"):
        unpack(pack(made(value)))


@pytest.mark.parametrize("size", [math.nan, math.inf, 1e16, -1e16, "much"])
def test_no_more_is_asked_for_or_given_back_than_there_can_be(size):
    with pytest.raises(DecodeError, match=r"`CreditRequest\.size`"):
        unpack(pack(Ask((CreditRequest("a", "", GET, 0, size),))))
    assert unpack(pack(Ask((CreditRequest("a", "", GET, 0, -5),)))).rows[0].size == -5


def test_objects_have_the_server_of_their_device_after_any_way():
    objects = tuple(MovedObject(device, 0, "a", "c/o", GET, "0-end", 1.0) for device in ("sda", "sdb"))
    one = NodeLoad("n", 1.0, 1.0, 1, server="h:1", objects=objects, servers={"sdb": "h:2"})
    assert [found.server for found in one.objects] == ["h:1", "h:2"]
    assert NodeLoad.decode(one.encode()) == one
    old = {name: value for name, value in one.to_data().items() if name != "servers"}
    assert [found.server for found in NodeLoad.from_data(old).objects] == ["h:1", "h:1"]
    assert all(len(found) == 7 for found in one.to_data()["objects"])
