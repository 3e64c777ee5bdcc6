"""The busiest objects: which are counted, how exactly, and in how little memory."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import Totals
from sluice_metrics.builtin.bandwidth import GetBw
from sluice_metrics.builtin.requests import ActiveRequests, GetsSec
from sluice_metrics.meter.busiest import AGEING, BusiestObjects
from sluice_metrics.meter.cell import Cell
from sluice_metrics.meter.meter import Meter
from sluice_metrics.testing import FakeClock, values, whole_request


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def meter(clock):
    return Meter([GetsSec(), ActiveRequests(), GetBw()], clock, objects=3)


def get(meter, name, count=1, size=10):
    for _ in range(count):
        whole_request(meter.begin("acme", "logs", name), "GET", (), (size,))


def objects(meter):
    return {
        path.removeprefix("acme/logs/"): row for path, row in values(meter, meter.changed()).items() if "s/" in path
    }


def test_an_object_is_told_of_from_its_second_request_on_and_exactly(meter):
    get(meter, "a/b")
    assert objects(meter) == {}
    get(meter, "a/b")
    assert objects(meter) == {"a/b": {"GETS_SEC": 2, "ACTIVE_REQUESTS": 0, "GET_BW": 20}}


def test_rows_of_objects_are_delivered_like_others(meter):
    get(meter, "a", 2)
    meter.delivered(meter.changed())
    assert meter.changed() == []
    get(meter, "a")
    assert objects(meter)["a"]["GETS_SEC"] == 3
    meter.delivered(meter.changed())
    meter.reconnected()
    assert objects(meter)["a"]["GETS_SEC"] == 3


def test_a_request_that_swift_refuses_takes_nobodys_place(meter):
    get(meter, "a", 2)
    for number in range(100):
        meter.begin("acme", "logs", f"guess-{number}").ended("GET")
    get(meter, "a")
    assert objects(meter)["a"]["GETS_SEC"] == 3
    assert len(meter.rows.objects) == 1


def test_a_newcomer_takes_the_place_of_the_rarest_and_begins_at_zero(meter):
    get(meter, "often", 5)
    get(meter, "sometimes", 3)
    get(meter, "rarely", 2)
    get(meter, "new", 2)
    found = objects(meter)
    assert {name: row["GETS_SEC"] for name, row in found.items()} == {"often": 5, "sometimes": 3, "new": 2}


def test_a_request_whose_object_lost_its_place_ends_in_peace(meter):
    slow = meter.begin("acme", "logs", "slow")
    slow.admitted("GET")
    for name in "abc":
        get(meter, name, 3)
    slow.sent("GET", 5)
    slow.ended("GET")
    assert "slow" not in objects(meter)
    assert values(meter, meter.changed())["acme"]["GETS_SEC"] == 10


def test_the_past_does_not_hold_places(meter, clock):
    for name in "abc":
        get(meter, name, 50)
    for _ in range(8):
        clock.now += AGEING
        meter.delivered(meter.changed())
    assert len(meter.rows.objects) == 0
    get(meter, "d", 2)
    assert set(objects(meter)) == {"d"}


def test_a_long_download_keeps_its_place_while_it_runs(meter, clock):
    get(meter, "film")
    handle = meter.begin("acme", "logs", "film")
    handle.admitted("GET")
    for _ in range(5):
        clock.now += AGEING
        handle.sent("GET", 1000)
        meter.delivered(meter.changed())
    handle.sent("GET", 1000)
    assert objects(meter)["film"]["GET_BW"] == 6010


def test_no_metric_of_objects_or_no_room_for_them_costs_nothing(clock):
    for meter in (Meter([ActiveRequests()], clock), Meter([GetsSec()], clock, objects=0)):
        get(meter, "a", 3)
        assert meter.rows.objects is None
        assert objects(meter) == {}


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), max_size=400), st.integers(1, 12))
def test_who_gets_more_than_one_request_in_limit_keeps_its_place_and_is_counted_exactly(stream, limit):
    made = []

    def make(path):
        made.append(path)
        return Cell(path, len(made), 1)

    busiest = BusiestObjects(make, limit)
    for number in stream:
        busiest.hit(str(number)).values[0] += 1
    assert len(busiest) <= limit
    true = Counter(map(str, stream))
    counted = {cell.path: cell.values[0] for cell in busiest.cells()}
    assert all(counted[path] <= true[path] for path in counted)
    assert all(path in counted for path, count in true.items() if count > len(stream) / limit)
    once = {path for path in made if made.count(path) == 1}
    assert all(counted[path] == true[path] for path in once & counted.keys())


def test_busy_objects_among_very_many_others_reach_the_agent_exactly(clock):
    """Ten objects receive a third of the requests, twenty thousand others the rest."""
    meter, totals = Meter([GetsSec()], clock, objects=100), Totals(clock)
    totals.add_worker(Hello("w", "proxy", 1, {}, meter.names, meter.gauges))
    clock.now += 1
    dice, true, found = random.Random(5), Counter(), Counter()
    for _ in range(30):
        for _ in range(1000):
            name = f"busy-{dice.randrange(10)}" if dice.random() < 0.33 else f"other-{dice.randrange(20_000)}"
            true[f"acme/logs/{name}"] += 1
            get(meter, name)
        clock.now += 1
        rows = meter.changed()
        totals.update(Counters("w", 0.0, tuple(rows)))
        meter.delivered(rows)
        found.update(totals.close_window(1.0)["GETS_SEC"].get("object", {}))
    for number in range(10):
        path = f"acme/logs/busy-{number}"
        assert found[path] == true[path]
    assert all(found[path] <= true[path] for path in found)
