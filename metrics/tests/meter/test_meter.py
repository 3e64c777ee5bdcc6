"""The host of the metrics: delivered rows, dropped rows, and the effect of a broken metric."""

from __future__ import annotations

import logging

import pytest

from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric
from sluice_metrics.builtin.bandwidth import PutBw
from sluice_metrics.builtin.requests import ActiveRequests, GetsSec
from sluice_metrics.meter.meter import Meter
from sluice_metrics.testing import FakeClock, values, whole_request


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def meter(clock):
    return Meter([GetsSec(), PutBw(), ActiveRequests()], clock, forget=100)


def get(meter, container="logs", end=True):
    handle = meter.begin("acme", container)
    whole_request(handle, "GET", end=end)
    return handle


def test_names_and_gauges_are_those_of_the_metrics(meter):
    assert meter.names == ("GETS_SEC", "PUT_BW", "ACTIVE_REQUESTS")
    assert meter.gauges == ("ACTIVE_REQUESTS",)


def test_a_tenant_is_the_sum_of_its_containers(meter):
    get(meter, "a")
    get(meter, "b")
    get(meter, "b")
    counted = {path: row["GETS_SEC"] for path, row in values(meter, meter.changed()).items()}
    assert counted == {"acme": 3, "acme/a": 1, "acme/b": 2}


def test_a_handle_without_events_is_no_news(meter):
    meter.begin("acme", "logs")
    assert meter.changed() == []


def test_a_request_that_was_never_admitted_does_not_end(meter):
    meter.begin("acme", "logs").ended("GET")
    assert meter.changed() == []


def test_admitted_and_ended_count_once(meter):
    handle = meter.begin("acme", "logs")
    for _ in range(2):
        handle.admitted("GET")
    for _ in range(2):
        handle.ended("GET")
    handle.admitted("GET")
    assert values(meter, meter.changed())["acme"] == {"GETS_SEC": 1, "PUT_BW": 0, "ACTIVE_REQUESTS": 0}


def test_a_request_ends_only_for_metrics_that_saw_it_begin(meter):
    handle = meter.begin("acme", "logs")
    handle.admitted("GET")
    meter.measure([GetsSec()])
    meter.measure([GetsSec(), ActiveRequests()])
    handle.ended("GET")
    assert values(meter, meter.changed())["acme"]["ACTIVE_REQUESTS"] == 0


def test_bytes_count_while_a_transfer_runs(meter):
    handle = meter.begin("acme", "logs")
    handle.admitted("PUT")
    for total in (100, 200, 300):
        handle.received("PUT", 100)
        rows = meter.changed()
        meter.delivered(rows)
        assert values(meter, rows)["acme/logs"]["PUT_BW"] == total


def test_delivered_rows_are_sent_again_only_when_they_change(meter):
    get(meter, "a")
    get(meter, "b")
    rows = meter.changed()
    meter.delivered(rows)
    assert meter.changed() == []
    get(meter, "b")
    assert {path for path, _, _ in meter.changed()} == {"acme", "acme/b"}


def test_a_lost_message_costs_nothing(meter):
    get(meter)
    lost = meter.changed()
    get(meter)
    again = meter.changed()
    assert [path for path, _, _ in again] == [path for path, _, _ in lost]
    assert values(meter, again)["acme"]["GETS_SEC"] == 2


def test_what_moved_on_while_a_message_was_under_way_stays_changed(meter):
    get(meter)
    rows = meter.changed()
    get(meter)
    meter.delivered(rows)
    assert values(meter, meter.changed())["acme/logs"]["GETS_SEC"] == 2


def test_half_a_message_can_be_delivered(meter):
    get(meter)
    meter.delivered(meter.changed()[:1])
    assert [path for path, _, _ in meter.changed()] == ["acme/logs"]


def test_another_agent_gets_everything_again(meter):
    get(meter, end=False)
    rows = meter.changed()
    meter.delivered(rows)
    meter.reconnected()
    assert meter.changed() == rows


def test_an_idle_row_is_forgotten_and_born_again_at_zero(meter, clock):
    get(meter)
    before = meter.changed()
    meter.delivered(before)
    clock.now += 101
    meter.changed()
    get(meter)
    after = meter.changed()
    assert values(meter, after)["acme/logs"]["GETS_SEC"] == 1
    assert all(new[1] > old[1] for new, old in zip(after, before, strict=True))


def test_a_row_that_did_not_get_through_is_not_forgotten(meter, clock):
    get(meter)
    meter.changed()
    clock.now += 1000
    assert len(meter.changed()) == 2


def test_a_row_with_a_level_is_never_forgotten(meter, clock):
    handle = get(meter, end=False)
    meter.delivered(meter.changed())
    clock.now += 1000
    meter.changed()
    handle.ended("GET")
    assert values(meter, meter.changed())["acme"] == {"GETS_SEC": 1, "PUT_BW": 0, "ACTIVE_REQUESTS": 0}


def test_a_level_outlives_the_handle_that_raised_it(meter, clock):
    get(meter, end=False)
    meter.delivered(meter.changed())
    clock.now += 1000
    meter.changed()
    get(meter, end=False)
    assert values(meter, meter.changed())["acme"]["ACTIVE_REQUESTS"] == 2


def test_idleness_counts_from_the_last_news(meter, clock):
    get(meter)
    for _ in range(3):
        clock.now += 60
        get(meter)
        meter.delivered(meter.changed())
    clock.now += 60
    meter.changed()
    get(meter)
    assert values(meter, meter.changed())["acme"]["GETS_SEC"] == 5


def test_a_late_receipt_is_not_for_a_row_born_since(meter, clock):
    get(meter)
    rows = meter.changed()
    meter.delivered(rows)
    clock.now += 101
    meter.changed()
    get(meter)
    meter.delivered(rows)
    assert len(meter.changed()) == 2


def test_a_silent_request_keeps_its_row(clock):
    meter = Meter([PutBw()], clock, forget=100)
    handle = meter.begin("acme", "logs")
    clock.now += 1000
    meter.changed()
    other = meter.begin("acme", "logs")
    handle.received("PUT", 5)
    other.received("PUT", 6)
    assert values(meter, meter.changed())["acme/logs"] == {"PUT_BW": 11}


def test_rows_of_one_instant_have_different_births(meter):
    for name in "abc":
        get(meter, name)
    births = [born for _, born, _ in meter.changed()]
    assert len(set(births)) == len(births)


def broken(event, gauge=False, answer=None):
    """A metric whose ``event`` raises, or returns ``answer``."""

    def fault(self, *args):
        if answer is None:
            raise RuntimeError("metric is broken")
        return answer

    body = {"info": MetricInfo("BROKEN", "count", "a test"), "gauge": gauge, "admitted": lambda self, method: 1}
    return type("Broken", (Metric,), {**body, event: fault})()


@pytest.mark.parametrize("event", ["admitted", "received", "sent", "ended"])
@pytest.mark.parametrize("answer", [None, float("nan"), float("inf"), "many"])
def test_a_broken_metric_is_switched_off_for_that_event_and_logged_once(clock, caplog, event, answer):
    meter = Meter([broken(event, answer=answer), GetsSec(), PutBw()], clock)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            whole_request(meter.begin("acme", "logs"), "GET", (1,), (1,))
    assert meter.failures == {f"BROKEN.{event}": 1}
    assert len(caplog.records) == 1
    counted = values(meter, meter.changed())["acme"]
    assert counted["GETS_SEC"] == 3
    assert counted["BROKEN"] == (0 if event == "admitted" else 3)


def test_a_broken_gauge_goes_down_and_stays_down(clock, caplog):
    meter = Meter([broken("ended", gauge=True), GetsSec()], clock)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            whole_request(meter.begin("acme", "logs"), "GET")
    assert values(meter, meter.changed())["acme"] == {"BROKEN": 0, "GETS_SEC": 2}


def test_invented_methods_do_not_fill_the_memory(meter):
    for number in range(1000):
        whole_request(meter.begin("acme", "logs"), f"M{number}")
    assert len(meter.on_admitted) < 100
    assert values(meter, meter.changed())["acme"]["ACTIVE_REQUESTS"] == 0
