"""The smaller parts of the middleware: paths, facts, metadata, counting, the socket to the agent."""

import contextlib
import io
import logging
import os
import socket

import pytest

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.options import OptionError
from sluice_metrics.meter.meter import Meter
from sluice_metrics.registry import load_metrics
from sluice_middleware.bandwidth.bodies import UploadInput
from sluice_middleware.proxy.metric_adapters import CountedBody, RequestMetrics
from sluice_middleware.proxy.metric_reporter import MESSAGE_LIMIT, Reporter
from sluice_middleware.proxy.middleware import filter_factory
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.policy_lookup import content_length, download_facts, is_data, object_path, upload_facts


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v1/AUTH_a/c/o", ("AUTH_a", "c", "o")),
        ("/v1.0/AUTH_a/c/o/with/slashes/", ("AUTH_a", "c", "o/with/slashes/")),
        ("/v1/AUTH_a/c/caf\xc3\xa9", ("AUTH_a", "c", "café")),
        ("/v1/AUTH_a/c/", None),
        ("/v1/AUTH_a/c", None),
        ("/v1/AUTH_a//o", None),
        ("/v1//c/o", None),
        ("/v1/.expiring_objects/c/o", None),
        ("/v2/AUTH_a/c/o", None),
        ("/auth/v1.0/c/o", None),
        ("/info", None),
        ("", None),
    ],
)
def test_an_object_path_is_recognised(path, target):
    assert object_path({"PATH_INFO": path}) == target


@pytest.mark.parametrize(
    ("env", "length"),
    [
        ({"CONTENT_LENGTH": "12"}, 12),
        ({"CONTENT_LENGTH": ""}, None),
        ({}, None),
        ({"CONTENT_LENGTH": "x"}, None),
        ({"CONTENT_LENGTH": "-1"}, None),
        ({"CONTENT_LENGTH": "12", "HTTP_TRANSFER_ENCODING": "chunked"}, None),
    ],
)
def test_a_length_is_known_or_unknown(env, length):
    assert content_length(env) == length


def test_facts_of_an_upload():
    env = {"REQUEST_METHOD": "PUT", "CONTENT_LENGTH": "5", "HTTP_X_OBJECT_META_TAGS": "Red, blue ,"}
    facts = upload_facts(env, "a/b.html")
    assert (facts.method, facts.size, facts.content_type) == ("PUT", 5, "text/html")
    assert facts.tags == {"red", "blue"}


def test_facts_of_a_download_prefer_the_plain_size():
    headers = [("Content-Length", "10"), ("Content-Type", "text/plain"), ("X-Object-Meta-Tags", "x")]
    assert download_facts("GET", "o", headers, 99).size == 99
    facts = download_facts("GET", "o", headers, None)
    assert (facts.size, facts.content_type, facts.tags) == (10, "text/plain", {"x"})


@pytest.mark.parametrize(
    ("env", "data"),
    [
        ({}, True),
        ({"CONTENT_LENGTH": "1"}, True),
        ({"CONTENT_LENGTH": "0"}, False),
        ({"HTTP_X_STATIC_LARGE_OBJECT": "True"}, False),
        ({"HTTP_X_OBJECT_MANIFEST": "c/p"}, False),
        ({"HTTP_X_OBJECT_SYSMETA_SYMLINK_TARGET": "c/o"}, False),
    ],
)
def test_manifests_links_and_empty_bodies_are_not_data(env, data):
    assert is_data(env) is data


RECORDS = ({"f": "compression", "v": 1, "r": {"size": 7}},)


def test_a_chain_reads_back():
    assert sysmeta.decode_chain(sysmeta.encode_chain(RECORDS)) == RECORDS


@pytest.mark.parametrize("value", ["", "{", "[]", "{}", "[1]", '[{"f":1,"r":{}}]', '[{"f":"x"}]', "null"])
def test_an_invalid_chain_is_a_decode_error_with_the_raw_bytes(value):
    with pytest.raises(DecodeError) as caught:
        sysmeta.decode_chain(value)
    assert caught.value.raw == value.encode()


def test_response_headers_describe_the_plain_object():
    headers = [
        ("Content-Length", "3"),
        ("Etag", '"stored"'),
        (sysmeta.CHAIN, "[]"),
        (sysmeta.ETAG, "plain"),
        ("X-Object-Sysmeta-Container-Update-Override-Size", "7"),
        ("X-Object-Sysmeta-Other", "kept"),
        ("X-Object-Meta-A", "b"),
    ]
    assert sysmeta.plain_headers(headers, 7) == [
        ("Content-Length", "7"),
        ("Etag", '"plain"'),
        ("X-Object-Sysmeta-Other", "kept"),
        ("X-Object-Meta-A", "b"),
    ]


def meter():
    return Meter([metric() for metric in load_metrics().values()])


def totals(counted, path="AUTH_a"):
    rows = {row_path: values for row_path, _, values in counted.changed()}
    return dict(zip(counted.names, rows.get(path, [0] * len(counted.names)), strict=True))


@pytest.mark.parametrize(
    ("status", "count"), [("200 OK", 1), ("404 Not Found", 1), ("401 Unauthorized", 0), ("403 F", 0)]
)
def test_a_request_that_swift_did_not_let_in_is_not_counted(status, count):
    counted = meter()
    life = RequestMetrics(counted.begin("AUTH_a", "c"), "GET", None)
    life.answered(status)
    assert totals(counted)["GETS_SEC"] == count
    assert totals(counted)["ACTIVE_REQUESTS"] == count
    life.end()
    life.end()
    assert totals(counted)["ACTIVE_REQUESTS"] == 0


def test_the_parts_of_a_request_count_bytes_but_no_operation():
    counted = meter()
    life = RequestMetrics(counted.begin("AUTH_a", "c"), "GET", "SLO")
    life.answered("200 OK")
    life.went += 10
    life.end()
    found = totals(counted)
    assert (found["GETS_SEC"], found["ACTIVE_REQUESTS"], found["GET_BW"]) == (0, 0, 10)


def test_an_upload_counts_from_its_first_read_and_while_it_runs():
    counted, alive = meter(), set()
    life = RequestMetrics(counted.begin("AUTH_a", "c"), "PUT", None, alive)
    body = UploadInput(io.BytesIO(b"abcdef\nghi"), metrics=life)
    assert totals(counted)["PUTS_SEC"] == 0
    assert body.read(3) == b"abc"
    assert alive == {life}
    for _ in range(2):
        life.flush()
        assert (totals(counted)["PUTS_SEC"], totals(counted)["PUT_BW"]) == (1, 3)
    assert body.readline() == b"def\n"
    life.flush()
    assert totals(counted)["PUT_BW"] == 7
    assert body.read() == b"ghi"
    life.end()
    assert totals(counted)["PUT_BW"] == 10
    assert alive == set()


def test_an_interrupted_download_ends_its_metrics():
    counted = meter()
    life = RequestMetrics(counted.begin("AUTH_a", "c"), "GET", None)
    life.answered("200 OK")
    body = CountedBody([b"abc", b"def"], life)
    assert next(body) == b"abc"
    body.close()
    assert (totals(counted)["GET_BW"], totals(counted)["ACTIVE_REQUESTS"]) == (3, 0)


class Agent:
    """The other end of a worker's socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen()
        self.socket.settimeout(5)
        self.connection = None

    def take(self):
        if self.connection is None:
            self.connection, _ = self.socket.accept()
            self.connection.settimeout(5)
        return self.connection.recv(1 << 20)

    def close(self):
        for one in (self.connection, self.socket):
            if one is not None:
                one.close()


@pytest.fixture
def path(tmp_path):
    return os.path.relpath(tmp_path / "agent.sock")


@pytest.fixture
def agent(path):
    made = Agent(path)
    with contextlib.closing(made):
        yield made


@pytest.fixture
def reporter(path):
    made = Reporter(path, meter(), {"noop": 1}, lambda: "gen-1", logging.getLogger("test"))
    yield made
    made.disconnect()


def test_a_worker_says_hello_and_then_what_changed(agent, reporter):
    reporter._meter.begin("AUTH_a", "c").admitted("GET")
    reporter.tick()
    hello = Hello.decode(agent.take())
    assert (hello.worker, hello.actions, hello.pid) == (reporter.worker, {"noop": 1}, os.getpid())
    first = Counters.decode(agent.take())
    assert {row[0] for row in first.rows} == {"AUTH_a", "AUTH_a/c"}
    assert first.snapshot == "gen-1"
    reporter.tick()
    assert Counters.decode(agent.take()).rows == ()


def test_a_worker_says_without_which_plugins_it_runs(path, agent):
    one = Reporter(path, meter(), {}, lambda: "gen-1", logging.getLogger("test"), {"stranger": "no module"})
    one.tick()
    assert Hello.decode(agent.take()).plugins == {"stranger": "no module"}
    one.disconnect()


def test_many_rows_travel_in_several_messages_below_the_limit(agent, reporter):
    for number in range(700):
        reporter._meter.begin("AUTH_a", f"container-{number}-" + "x" * 200).admitted("GET")
    seen = set()
    for _ in range(20):  # a full socket loses nothing: the next tick sends the rest
        reporter.tick()
        while True:
            agent_has = agent.connection is None or agent.connection.fileno() >= 0
            assert agent_has
            raw = agent.take()
            assert len(raw) <= MESSAGE_LIMIT
            if b"rows" not in raw:
                continue
            rows = Counters.decode(raw).rows
            seen.update(row[0] for row in rows)
            if not rows or len(seen) == 701:
                break
        if len(seen) == 701:
            break
    assert len(seen) == 701


def test_the_reporter_reconnects_to_a_returning_agent(path, reporter):
    reporter._meter.begin("AUTH_a", "c").admitted("GET")
    reporter.tick()
    reporter.tick()
    agent = Agent(path)
    with contextlib.closing(agent):
        reporter.tick()
        Hello.decode(agent.take())
        assert Counters.decode(agent.take()).rows
    os.unlink(path)
    reporter.tick()
    reporter.tick()
    again = Agent(path)
    with contextlib.closing(again):
        reporter.tick()
        Hello.decode(again.take())
        assert {row[0] for row in Counters.decode(again.take()).rows} == {"AUTH_a", "AUTH_a/c"}


def test_unknown_options_are_refused_by_name():
    with pytest.raises(OptionError, match="unknown option `snapshot_dri`, did you mean `snapshot_dir`"):
        filter_factory({}, snapshot_dri="/x")
