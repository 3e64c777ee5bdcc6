"""The counts of each built-in metric, by request."""

from __future__ import annotations

import pytest

from sluice_metrics.api import HIT, MISS, Response
from sluice_metrics.builtin.bandwidth import GetBw, PutBw, Throughput
from sluice_metrics.builtin.compressibility import Compressibility
from sluice_metrics.builtin.requests import ActiveRequests, GetsSec, PutsSec
from sluice_metrics.builtin.responses import Errors, HitRatio, ResponseTime, ResponseTimeP95, ResponseTimeP99
from sluice_metrics.meter.meter import Meter
from sluice_metrics.registry import BUILT_IN
from sluice_metrics.testing import MetricContract, values, whole_request


class TestGetsSec(MetricContract):
    metric = GetsSec


class TestPutsSec(MetricContract):
    metric = PutsSec


class TestGetBw(MetricContract):
    metric = GetBw


class TestPutBw(MetricContract):
    metric = PutBw


class TestThroughput(MetricContract):
    metric = Throughput


class TestActiveRequests(MetricContract):
    metric = ActiveRequests


class TestErrors(MetricContract):
    metric = Errors


class TestHitRatio(MetricContract):
    metric = HitRatio


class TestResponseTime(MetricContract):
    metric = ResponseTime


class TestResponseTimeP95(MetricContract):
    metric = ResponseTimeP95


class TestResponseTimeP99(MetricContract):
    metric = ResponseTimeP99


class TestCompressibility(MetricContract):
    metric = Compressibility


def test_every_built_in_has_its_suite():
    assert {one.metric for one in MetricContract.__subclasses__()} >= set(BUILT_IN)


#: The counts of every response.
RESPONSE = {"ERRORS:weight": 1, "RESPONSE_TIME:weight": 1}
NOTHING = dict.fromkeys(Meter([one() for one in BUILT_IN]).names, 0)


@pytest.mark.parametrize(
    ("method", "received", "sent", "end", "expected"),
    [
        ("GET", (), (10, 5), True, {"GETS_SEC": 1, "GET_BW": 15, "THROUGHPUT": 15, **RESPONSE}),
        ("PUT", (10, 5), (), True, {"PUTS_SEC": 1, "PUT_BW": 15, "THROUGHPUT": 15, **RESPONSE}),
        ("PUT", (7,), (99,), True, {"PUTS_SEC": 1, "PUT_BW": 7, "THROUGHPUT": 7, **RESPONSE}),
        ("GET", (), (10,), False, {"GETS_SEC": 1, "GET_BW": 10, "THROUGHPUT": 10, "ACTIVE_REQUESTS": 1}),
        ("HEAD", (), (), False, {"ACTIVE_REQUESTS": 1}),
        ("POST", (3,), (3,), False, {"ACTIVE_REQUESTS": 1}),
        ("DELETE", (), (70,), False, {"ACTIVE_REQUESTS": 1}),
        ("DELETE", (), (70,), True, {**RESPONSE}),
    ],
)
def test_a_request_counts_at_its_tenant_and_its_container(method, received, sent, end, expected):
    meter = Meter([one() for one in BUILT_IN])
    whole_request(meter.begin("acme", "logs"), method, received, sent, end)
    counted = {**NOTHING, **expected}
    assert values(meter, meter.changed()) == {"acme": counted, "acme/logs": counted}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response("GET", 200), (0, 1)),
        (Response("HEAD", 404), (0, 1)),
        (Response("PUT", 499), (0, 1)),
        (Response("DELETE", 500), (1, 1)),
        (Response("POST", 507), (1, 1)),
        (Response("GET", 503, part=True), (0, 0)),
    ],
)
def test_errors_are_responses_of_five_hundred_and_above_to_whole_requests(response, expected):
    assert Errors().responded(response) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response("GET", 200, HIT), (1, 1)),
        (Response("HEAD", 304, HIT), (1, 1)),
        (Response("GET", 206, HIT, part=True), (1, 1)),
        (Response("GET", 404, MISS), (0, 1)),
        (Response("GET", 200), (0, 0)),
    ],
)
def test_the_hit_ratio_is_of_the_reads_for_which_the_cache_was_searched(response, expected):
    assert HitRatio().responded(response) == expected


@pytest.mark.parametrize(("response", "weight"), [(Response("GET", 503), 1), (Response("GET", 200, part=True), 0)])
def test_every_response_to_a_whole_request_took_some_time(response, weight):
    assert {one().responded(response) for one in (ResponseTime, ResponseTimeP95, ResponseTimeP99)} == {(0, weight)}
