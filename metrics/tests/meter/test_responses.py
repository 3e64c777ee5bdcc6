"""The meter's means over responses, and quantiles of their durations."""

from __future__ import annotations

import logging

import pytest

from sluice_core.describe import MetricInfo
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.sketch import find_bucket
from sluice_core.metrics.totals import Totals
from sluice_metrics.api import Metric, Response
from sluice_metrics.builtin.requests import GetsSec
from sluice_metrics.builtin.responses import Errors, ResponseTime, ResponseTimeP99
from sluice_metrics.meter.meter import Meter
from sluice_metrics.testing import FakeClock, values


def count(meter, *statuses, container="logs"):
    for status in statuses:
        meter.begin("acme", container).responded(Response("GET", status), 0.1)


def test_amounts_and_weights_are_totals_of_tenant_and_container():
    meter = Meter([Errors(), GetsSec()])
    count(meter, 200, 503)
    count(meter, 200, container="docs")
    assert meter.gauges == ()
    assert values(meter, meter.changed()) == {
        "acme": {"ERRORS": 1, "GETS_SEC": 0, "ERRORS:weight": 3},
        "acme/logs": {"ERRORS": 1, "GETS_SEC": 0, "ERRORS:weight": 2},
        "acme/docs": {"ERRORS": 0, "GETS_SEC": 0, "ERRORS:weight": 1},
    }


def test_what_weighs_nothing_is_no_news():
    meter = Meter([Errors()])
    meter.begin("acme", "logs").responded(Response("GET", 503, part=True), 0.1)
    assert meter.changed() == []


def test_a_metric_is_asked_once_for_equal_responses_and_invented_methods_fill_no_memory():
    questions = []

    class Curious(Errors):
        def responded(self, response):
            questions.append(response)
            return super().responded(response)

    meter = Meter([Curious()])
    count(meter, 200, 200, 503, 200)
    assert questions == [Response("GET", 200), Response("GET", 503)]
    for number in range(1000):
        meter.begin("acme", "logs").responded(Response(f"M{number}", 500), 0.1)
    assert len(meter.responses._known) < 300
    assert values(meter, meter.changed())["acme"] == {"ERRORS": 1001, "ERRORS:weight": 1004}


@pytest.mark.parametrize("answer", [(float("nan"), 1), (1, float("inf")), (-1, 1), 3, None])
def test_a_broken_mean_is_switched_off_and_logged_once(caplog, answer):
    class Broken(Metric):
        info = MetricInfo("BROKEN", "fraction", "a test")
        mean = True

        def responded(self, response):
            return answer

    meter = Meter([Broken(), Errors()])
    with caplog.at_level(logging.ERROR):
        count(meter, 200, 500, 404)
    assert meter.failures == {"BROKEN.responded": 1}
    assert len(caplog.records) == 1
    assert values(meter, meter.changed())["acme"] == {
        "BROKEN": 0,
        "ERRORS": 1,
        "BROKEN:weight": 0,
        "ERRORS:weight": 3,
    }


def test_a_mean_that_is_replaced_goes_on_where_it_was_as_the_agent_thinks():
    meter, totals = Meter([Errors()]), Totals(lambda: 0.0)
    count(meter, 500, 200)
    say(meter, totals)
    meter.measure([GetsSec(), Errors()])
    count(meter, 500, 200, 200)
    assert values(meter, meter.changed())["acme"] == {"GETS_SEC": 0, "ERRORS": 2, "ERRORS:weight": 5}
    grown = say(meter, totals)
    assert (grown["ERRORS"]["tenant"], grown["ERRORS:weight"]["tenant"]) == ({"acme": 1}, {"acme": 3})


def say(meter, totals):
    """The growth since the last call, as an agent sees it."""
    totals.add_worker(Hello("w", "proxy", 1, {}, meter.names, meter.gauges))
    totals.update(Counters("w", 0.0, tuple(meter.changed())))
    return totals.close_window(1.0)


# -- quantiles


def respond(meter, *seconds, container="logs"):
    for one in seconds:
        meter.begin("acme", container).responded(Response("GET", 200), one)


def test_quantiles_that_count_the_same_share_a_sketch():
    meter = Meter([ResponseTime(), ResponseTimeP99(), GetsSec()])
    respond(meter, 0.1, 0.1, 3.0)
    assert meter.quantiles == {"RESPONSE_TIME": ("RESPONSE_TIME", 0.5), "RESPONSE_TIME_P99": ("RESPONSE_TIME", 0.99)}
    rows = meter.changed()
    assert values(meter, rows)["acme"]["RESPONSE_TIME:weight"] == 3
    packed = [find_bucket(0.1), 2, find_bucket(3.0), 1]
    assert meter.sketches(rows) == {"RESPONSE_TIME": [packed, packed]}
    assert meter.sketches(rows[:1]) == {"RESPONSE_TIME": [packed]}


def test_a_quantile_of_others_has_a_sketch_of_its_own():
    class Reads(ResponseTime):
        info = MetricInfo("READ_TIME", "seconds", "a test")

        def responded(self, response):
            return 0, 1 if response.method == "HEAD" else 0

    meter = Meter([ResponseTime(), Reads()])
    respond(meter, 0.1)
    assert meter.sketches(meter.changed()) == {"RESPONSE_TIME": [[find_bucket(0.1), 1]] * 2, "READ_TIME": [[], []]}


def test_a_row_with_a_new_time_is_news_and_a_forgotten_one_begins_anew():
    clock = FakeClock()
    meter = Meter([ResponseTime()], clock, forget=100)
    for _ in range(2):
        respond(meter, 0.1)
        rows = meter.changed()
        meter.delivered(rows)
        assert meter.changed() == []
    respond(meter, 9.0)
    assert meter.sketches(meter.changed())["RESPONSE_TIME"][0] == [find_bucket(9.0), 1], "only what changed"
    meter.reconnected()
    assert meter.sketches(meter.changed())["RESPONSE_TIME"][0] == [find_bucket(0.1), 2, find_bucket(9.0), 1]
    meter.delivered(meter.changed())
    clock.now += 101
    meter.changed()
    respond(meter, 0.1)
    assert meter.sketches(meter.changed())["RESPONSE_TIME"][0] == [find_bucket(0.1), 1]


def test_a_metric_that_comes_or_goes_leaves_the_sketches_of_others():
    meter = Meter([ResponseTime()])
    respond(meter, 0.1)
    meter.measure([GetsSec(), *meter._metrics])
    assert meter.sketches(meter.changed())["RESPONSE_TIME"][0] == [find_bucket(0.1), 1]
    meter.measure([GetsSec()])
    assert meter.sketches(meter.changed()) == {}
    meter.measure([ResponseTime()])
    assert meter.sketches(meter.changed()) == {"RESPONSE_TIME": [[], []]}
