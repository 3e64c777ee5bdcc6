"""A Prometheus instead of Sluice's own history: the queries to it, and the reading of its answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from sluice_controller.api.prometheus.history import expression_of
from sluice_controller.metric_history.prometheus_client import PrometheusClient
from sluice_core.errors import PeerError
from sluice_metric_history.records import SeriesKey
from sluice_metric_history.resolutions import Point

FLOW, NODE = "sluice_bandwidth_flow_bytes_per_second", "sluice_bandwidth_bytes_per_second"


@pytest.mark.parametrize(
    ("key", "expression"),
    [
        (
            SeriesKey("GET_BW_SHARE", "tenant", "AUTH_a"),
            f'sum({FLOW}{{account="AUTH_a",container="",method="GET",what="share"}})',
        ),
        (
            SeriesKey("PUT_BW_FLOOR", "container", 'AUTH_a/"\\\n'),
            f'sum({FLOW}{{account="AUTH_a",container="\\"\\\\\\n",method="PUT",what="floor"}})',
        ),
        (SeriesKey("GET_BW_MEASURED", "cluster", ""), f'sum({FLOW}{{method="GET",what="measured"}})'),
        (
            SeriesKey("NODE_REPLICATION_BW_CAPACITY", "node", "n1/storage_node"),
            f'sum({NODE}{{node="n1",side="storage_node",method="REPLICATION",what="capacity"}})',
        ),
        (
            SeriesKey("DEVICE_GET_BW_MEASURED", "device", "n1/d1"),
            'sum(sluice_bandwidth_part_bytes_per_second{node="n1",side="storage_node",device="d1",method="GET",'
            'what="measured"})',
        ),
        (
            SeriesKey("PART_GET_BW_SHARE", "part", "n1/d1/AUTH_a"),
            'sum(sluice_bandwidth_part_bytes_per_second{node="n1",side="storage_node",device="d1",account="AUTH_a",'
            'method="GET",what="share"})',
        ),
        (
            SeriesKey("PART_PUT_BW_MEASURED", "part", "n1/proxy/AUTH_a"),
            'sum(sluice_bandwidth_part_bytes_per_second{node="n1",side="proxy",device="",account="AUTH_a",'
            'method="PUT",what="measured"})',
        ),
        (
            SeriesKey("VOLUME_READ_BW", "volume", "AUTH_p/v1"),
            'sum(sluice_volume_bytes_per_second{volume="v1",project="p",operation="read"})',
        ),
        (
            SeriesKey("VOLUME_LATENCY_P99", "tenant", "AUTH_p"),
            'sum(sluice_tenant_volumes_latency_seconds{project="p",quantile="0.99"})',
        ),
        (SeriesKey("VOLUME_QUEUE", "cluster", ""), "sum(sluice_cluster_volumes_queue{})"),
        (SeriesKey("POOL_FREE", "pool", "h@p#1"), 'sum(sluice_pool_free_ratio{pool="h@p#1"})'),
        (SeriesKey("PUTS_SEC", "tenant", "AUTH_a"), ""),
        (SeriesKey("GET_BW_MEASURED", "tenant", "", rest=True), ""),
    ],
)
def test_a_series_has_an_expression_where_it_is_exported(key, expression):
    assert expression_of(key, "AUTH_") == expression


class Answering(HTTPServer):
    """Answers each query with the ``values`` of its function, and records the queries."""

    def __init__(self, values, body=None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.values, self.body, self.asked = values, body, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append((self.path, {name: one[0] for name, one in form.items()}))
        values = self.server.values.get(form["query"][0].partition("_")[0])
        result = [{"metric": {}, "values": values}] if values else []
        body = self.server.body or json.dumps({"status": "success", "data": {"result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture
def prometheus():
    """A function that starts a server with the given values."""
    servers = []

    def start(values, body=None):
        server = Answering(values, body)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_step_is_what_was_in_it_and_one_without_values_a_gap(prometheus):
    ends = {"avg": "2", "min": "1", "max": "3", "quantile": "2.5"}
    server = prometheus({name: [[1010, value], [1030, value]] for name, value in ends.items()})
    points = PrometheusClient(server.url).points("sum(x)", 1000, 1030, 10)
    assert points == [Point(2.0, 1.0, 3.0, 2.5), None, Point(2.0, 1.0, 3.0, 2.5)]
    path, asked = server.asked[0]
    assert path == "/api/v1/query_range"
    assert asked == {"query": "avg_over_time((sum(x))[10s:1s])", "start": "1010", "end": "1030", "step": "10"}


def test_what_it_does_not_know_is_all_gaps(prometheus):
    assert PrometheusClient(prometheus({}).url).points("sum(x)", 0, 3, 1) == [None] * 3


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"data": {"result": [{"values": [["x", 1]]}]}}', b"{}"])
def test_nonsense_is_a_fault_of_the_peer(prometheus, body):
    with pytest.raises(PeerError, match=r"prometheus at `127\.0\.0\.1` cannot be asked"):
        PrometheusClient(prometheus({}, body).url).points("sum(x)", 0, 3, 1)


def test_one_that_is_away_is_named_without_its_password():
    with pytest.raises(PeerError) as caught:
        PrometheusClient("http://user:secret@127.0.0.1:1").points("sum(x)", 0, 3, 1)
    assert "secret" not in str(caught.value)
