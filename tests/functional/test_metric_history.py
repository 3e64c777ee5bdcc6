"""The history of a live cluster: Swift's activity, as the API and a Prometheus show it."""

import re
import threading
from pathlib import Path

import pytest
from tests.support.cluster.prometheus import ENDPOINTS, Prometheus

from sluice_aio.base.ports import free_port
from sluice_client import Client

PAGE = (Path(__file__).parents[2] / "docs" / "admin" / "history.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```promql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
#: Series appear with the next ranking, each ten seconds.
LIMIT = 40.0
BODY = b"x" * 10_000


@pytest.fixture
def load(swift):
    """PUTs and GETs, a few each second, until the end of the test."""
    swift.request("PUT", "plotted")
    over = threading.Event()

    def run():
        number = 0
        while not over.wait(0.1):
            number += 1
            swift.request("PUT", f"plotted/{number % 20}", BODY)
            swift.request("GET", f"plotted/{number % 20}")

    thread = threading.Thread(target=run)
    thread.start()
    yield
    over.set()
    thread.join()


def known(points):
    return [point for point in points if point[1]]


def test_what_swift_did_is_there_to_look_at(api, load, eventually):
    def moved(metric, target=""):
        listed = {(one["metric"], one["target"]) for one in api.metric_series(metric=metric)}
        return (metric, target) in listed and known(api.metric_history(metric, target, begin="-30", step=1)["points"])

    points = eventually(lambda: moved("PUTS_SEC", "AUTH_test"), LIMIT)
    assert max(point[3] for point in points) <= 20
    assert eventually(lambda: moved("PUTS_SEC", "AUTH_test/plotted"), LIMIT)
    assert eventually(lambda: moved("PUTS_SEC"), LIMIT)
    assert eventually(lambda: moved("GET_BW_MEASURED", "AUTH_test"), LIMIT)
    nodes = {one["target"] for one in api.metric_series(metric="NODE_PUT_BW_MEASURED")}
    assert any(one.endswith("/proxy") for one in nodes)
    assert any(known(moved("NODE_PUT_BW_MEASURED", node) or []) for node in nodes)
    tens = eventually(lambda: known(api.metric_history("PUTS_SEC", "AUTH_test", begin="-60", step=10)["points"]), LIMIT)
    _, mean, low, high, p95 = tens[-1]
    assert low <= mean <= high
    assert low <= p95 <= high


def test_a_real_prometheus_scrapes_everything_and_answers_the_same_calls(
    cluster, api, api_with, load, eventually, tmp_path
):
    port = cluster.layout.ports["api"]
    with Prometheus(free_port(), tmp_path, port, cluster.token) as prometheus:
        up = "up == 1"
        eventually(lambda: {one["metric"]["job"] for one in prometheus.query(up)} == set(ENDPOINTS), LIMIT)
        flows = 'sluice_bandwidth_flow_bytes_per_second{account="AUTH_test",method="PUT",what="measured"} > 0'
        eventually(lambda: prometheus.query(flows), LIMIT)
        other = api_with("", history_url=prometheus.url)
        with Client(other.url, cluster.token) as asked:
            points = eventually(
                lambda: known(asked.metric_history("PUT_BW_MEASURED", "AUTH_test", begin="-10", step=1)["points"]),
                LIMIT,
            )
            assert all(low <= mean <= high for _, mean, low, high, _ in points)
            # values that are not exported are answered from the API's own history
            assert asked.metric_history("PUTS_SEC", "AUTH_test")["points"]
        (first, *others) = [line for block in QUERIES for line in block.splitlines()]
        assert prometheus.query(first)
        for example in others:
            assert isinstance(prometheus.query(example), list), example
