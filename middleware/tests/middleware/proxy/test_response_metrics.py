"""A proxy worker's metrics of its responses, up to the value that aggregators compute over all nodes."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.middleware.cache import PATH, Disks, environment

from sluice_agent.metrics.publisher import MetricPublisher
from sluice_core.messages.nodes import Counters, Hello, MetricBatch
from sluice_core.metrics.merge import MergedBatches
from sluice_core.metrics.totals import Totals
from sluice_core.testing import FakeBus, assignment
from sluice_filters.api import FilterError
from sluice_metrics.api import Response
from sluice_metrics.builtin.responses import Errors, ResponseTime, ResponseTimeP95
from sluice_metrics.meter.meter import Meter
from sluice_metrics.testing import FakeClock
from sluice_middleware.cache.store import CacheStore
from sluice_middleware.proxy.metric_adapters import RequestMetrics
from sluice_middleware.proxy.middleware import PROXY_OPTIONS, ProxyMiddleware
from sluice_middleware.swift.proxy_api import Request
from sluice_middleware.testing import FixedPolicies, ProxyStack

log = logging.getLogger(__name__)


class Node:
    """Workers, and an agent that publishes their counters."""

    def __init__(self, name, *meters):
        self.clock, self.bus = FakeClock(), FakeBus()
        self.totals = Totals(lambda: 0.0)
        self.meters = meters
        self.publisher = MetricPublisher(name, self.totals, self.bus, 0.06, self.clock)
        for number, meter in enumerate(meters):
            hello = Hello(f"w{number}", "proxy", 1, {}, meter.names, meter.gauges, quantiles=meter.quantiles)
            self.totals.add_worker(hello)

    def window(self):
        """The batch of ERRORS for one second."""
        return self.windows()["ERRORS"]

    def windows(self):
        """The batches of all metrics for one second."""
        for number, meter in enumerate(self.meters):
            rows = meter.changed()
            message = Counters(f"w{number}", 0.0, tuple(rows), sketches=meter.sketches(rows))
            assert self.totals.update(Counters.decode(message.encode()))
            meter.delivered(rows)
        self.clock.now += 1
        self.bus.sent.clear()
        self.publisher.tick()
        batches = [MetricBatch.decode(body) for _, body in self.bus.sent]
        return {batch.metric: batch for batch in batches}


def count(meter, *statuses):
    for status in statuses:
        meter.begin("acme", "logs").responded(Response("GET", status), 0.1)


def test_each_window_has_the_share_of_its_own_responses_zero_included_and_none_without_any():
    meter = Meter([Errors()])
    node = Node("n1", meter)
    for statuses, share in (((500, 200, 200, 200), 0.25), ((200,), 0.0), ((), None), ((503,), 1.0)):
        count(meter, *statuses)
        batch = node.window()
        assert batch.values.get("tenant", {}).get("acme") == share
        assert batch.weights.get("tenant", {}).get("acme", 0) == len(statuses)


SECONDS = st.lists(st.floats(0.001, 1000.0), max_size=20)
STATUSES = st.lists(st.sampled_from([200, 404, 500, 503]), max_size=20)


@given(st.lists(st.lists(STATUSES, min_size=2, max_size=2), min_size=1, max_size=4))
def test_workers_and_nodes_are_one(nodes):
    merged = MergedBatches()
    for number, workers in enumerate(nodes):
        meters = [Meter([Errors()]) for _ in workers]
        for meter, statuses in zip(meters, workers, strict=True):
            count(meter, *statuses)
        merged.add(Node(f"n{number}", *meters).window())
    every = [status for workers in nodes for statuses in workers for status in statuses]
    found = merged.values()
    if not every:
        assert found == {}
        return
    share = pytest.approx(sum(status >= 500 for status in every) / len(every))
    assert found == {"tenant": {"acme": share}, "container": {"acme/logs": share}, "cluster": {"": share}}


@pytest.fixture
def stack(tmp_path):
    made = ProxyStack(tmp_path)
    made.set_policies()
    assert made("PUT", body=b"some bytes").status_int == 201
    return made


def failing(stack, error):
    """Let Swift fail from now on."""

    def fail(env, start_response):
        raise error

    stack.proxy.handler.app = fail


def answering(stack, status):
    """Let Swift give only this status from now on."""

    def answer(env, start_response):
        start_response(status, [("Content-Length", "0")])
        return [b""]

    stack.proxy.handler.app = answer


def errors(stack):
    """Errors and responses of the tenant until now, including a successful upload."""
    meter = stack.proxy.meter
    rows = {path: dict(zip(meter.names, row, strict=True)) for path, _, row in meter.changed()}
    return rows["AUTH_a"]["ERRORS"], rows["AUTH_a"]["ERRORS:weight"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("200 OK", (0, 2)), ("404 Not Found", (0, 2)), ("500 No", (1, 2)), ("507 Full", (1, 2)), ("403 No", (0, 1))],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_the_status_that_swift_gives_counts_unless_it_lets_nobody_in(stack, method, status, expected):
    answering(stack, status)
    stack(method)
    assert errors(stack) == expected


def test_a_refusal_of_ours_is_an_error_and_so_is_what_swift_never_answers(stack):
    failing(stack, FilterError("no"))
    assert stack("GET").status_int == 503
    assert errors(stack) == (1, 2)
    failing(stack, RuntimeError("no"))
    with pytest.raises(RuntimeError):
        stack("GET")
    assert errors(stack) == (2, 3)


def test_a_part_of_a_large_object_is_no_response_of_its_own(stack):
    answering(stack, "503 No")
    stack("GET", env={"swift.source": "SLO"})
    assert errors(stack) == (0, 1)


def test_a_response_counts_once_when_its_body_is_closed(stack):
    body = stack.proxy(Request.blank("/v1/AUTH_a/c/o").environ, lambda *_: None)
    next(iter(body))
    assert errors(stack) == (0, 1)
    for _ in range(2):
        body.close()
    assert errors(stack) == (0, 2)


# -- the cache


@pytest.fixture
def caching(tmp_path, monkeypatch):
    """A proxy of a node with a cache, under a policy that uses it."""
    monkeypatch.setattr(CacheStore, "sweep", lambda store: None)  # a thread that would outlive the test
    given = {"agent_socket": str(tmp_path / "none.sock"), "snapshot_dir": str(tmp_path / "none")}
    options = {one.name: one.default for one in PROXY_OPTIONS} | given
    proxy = ProxyMiddleware(Disks(), {**options, "cache_dir": str(tmp_path / "cache"), "cache_alone": True}, log)
    policies = FixedPolicies(assignment(keyword="caching", params={"admit": 1, "max_size": 1000}))
    proxy.context.reader = proxy.context.lookup._reader = policies
    proxy._started = proxy.context.started = True
    return proxy


def read(proxy, path=PATH, method="GET", source=None, **headers):
    """The status of a read, and its hits and searches of the cache."""
    before = hits(proxy)
    env = environment(method, path, b"", headers)
    answer = Request({**env, "swift.source": source}).get_response(proxy)
    assert answer.body is not None
    after = hits(proxy)
    return answer.status_int, after[0] - before[0], after[1] - before[1]


def hits(proxy):
    rows = {path: dict(zip(proxy.meter.names, row, strict=True)) for path, _, row in proxy.meter.changed()}
    row = rows.get("AUTH_a/c", {})
    return row.get("HIT_RATIO", 0), row.get("HIT_RATIO:weight", 0)


def write(proxy, path=PATH, body=b"some bytes"):
    assert Request(environment("PUT", path, body, {})).get_response(proxy).status_int == 201


def test_what_the_cache_answers_is_a_hit_and_what_it_was_searched_for_in_vain_a_miss(caching):
    write(caching)
    assert hits(caching) == (0, 0), "a write searches for nothing"
    assert read(caching) == (200, 1, 1)
    assert read(caching, method="HEAD") == (200, 1, 1)
    assert read(caching, range="bytes=1-2") == (206, 1, 1)
    assert read(caching, if_none_match="*") == (304, 1, 1)
    assert read(caching, "/v1/AUTH_a/c/none") == (404, 0, 1)
    write(caching, "/v1/AUTH_a/c/large", bytes(2000))
    for _ in range(2):
        assert read(caching, "/v1/AUTH_a/c/large") == (200, 0, 1)


def test_segments_are_searched_for_by_themselves(caching):
    write(caching)
    assert read(caching, source="SLO") == (200, 1, 1)


@pytest.mark.parametrize("headers", [{"x_newest": "true"}, {"origin": "http://there"}])
def test_who_goes_past_the_cache_neither_hits_nor_misses(caching, headers):
    write(caching)
    assert read(caching, **headers) == (200, 0, 0)


def test_without_a_policy_nothing_is_searched(caching):
    write(caching)
    caching.context.reader = caching.context.lookup._reader = FixedPolicies()
    assert read(caching) == (200, 0, 0)


# -- response times


@given(st.lists(st.lists(SECONDS, min_size=2, max_size=2), min_size=1, max_size=3))
def test_a_quantile_is_that_of_all_responses_wherever_they_were_given(nodes):
    found = {metric: MergedBatches() for metric in ("RESPONSE_TIME", "RESPONSE_TIME_P95")}
    for number, workers in enumerate(nodes):
        meters = [Meter([ResponseTime(), ResponseTimeP95()]) for _ in workers]
        for meter, seconds in zip(meters, workers, strict=True):
            for one in seconds:
                meter.begin("acme", "logs").responded(Response("GET", 200), one)
        batches = Node(f"n{number}", *meters).windows()
        for metric, merged in found.items():
            merged.add(batches[metric])
    every = sorted(one for workers in nodes for seconds in workers for one in seconds)
    for metric, share in (("RESPONSE_TIME", 50), ("RESPONSE_TIME_P95", 95)):
        values = found[metric].values()
        if not every:
            assert values == {}
            continue
        exact = pytest.approx(every[-(-share * len(every) // 100) - 1], rel=0.051)
        assert values == {"tenant": {"acme": exact}, "container": {"acme/logs": exact}, "cluster": {"": exact}}


def test_an_agent_publishes_the_quantiles_of_its_node_beside_their_sketches():
    meter = Meter([ResponseTime(), ResponseTimeP95()])
    for seconds in (0.1, 0.1, 5.0):
        meter.begin("acme", "logs").responded(Response("GET", 200), seconds)
    node = Node("n1", meter)
    batches = node.windows()
    assert set(batches) == {"RESPONSE_TIME", "RESPONSE_TIME_P95"}
    median, tail = batches["RESPONSE_TIME"], batches["RESPONSE_TIME_P95"]
    assert (median.quantile, tail.quantile) == (0.5, 0.95)
    assert median.values["tenant"]["acme"] == pytest.approx(0.1, rel=0.05)
    assert tail.values["tenant"]["acme"] == pytest.approx(5.0, rel=0.05)
    assert median.sketches == tail.sketches
    assert [batch.sketches for batch in node.windows().values()] == [{}, {}], "nothing happened since"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_the_time_begins_with_the_request_and_ends_with_the_last_byte(method):
    meter = Meter([ResponseTime()])
    metrics = RequestMetrics(meter.begin("acme", "logs"), method, None)
    metrics.answered("200 OK")
    assert meter.changed() == []
    metrics._began -= 20.0
    for _ in range(2):
        metrics.end()
    values = Node("n1", meter).windows()["RESPONSE_TIME"].values
    assert values["container"] == {"acme/logs": pytest.approx(20.0, rel=0.06)}
