"""Bodies are charged before they pass, at a proxy and at an object server before a Swift in memory."""

import io
import logging
import os
from wsgiref.validate import validator

import pytest
from tests.support.middleware.credit_agent import FakeAgent, grant_all, grant_free, grant_nothing
from tests.support.middleware.reads import Node

from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import ANY_POLICY, GET, PUT, Flow
from sluice_core.messages.credit import Ask, CreditGrant, CreditHello, Grant, TrafficReport
from sluice_core.resolve import Candidates
from sluice_core.testing import assignment
from sluice_middleware.bandwidth import limiter
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.bodies import ThrottledBody, UploadInput
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import Request
from sluice_middleware.testing import FixedPolicies, ProxyStack
from sluice_middleware.wsgi.response import UpstreamResponse

PATH = "/v1/AUTH_a/c/o"
TARGET = ("AUTH_a", "c", "o")
BODY = os.urandom(300_000)
ONE = Flow("AUTH_a", GET)


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(os.path.relpath(tmp_path / "agent.sock"))
    yield made
    made.close()
    made.wait_briefly()


def lined(one, agent, tmp_path, side, server=""):
    """Give a limiter a connection of its own to the agent."""
    one.client = CreditClient(os.path.relpath(tmp_path / "agent.sock"), side, server)
    one.client.tick()
    return one.client


@pytest.fixture
def stand(tmp_path, agent):
    made = ProxyStack(tmp_path)
    line = lined(made.proxy.limiter, agent, tmp_path, PROXY)
    yield made
    line.disconnect()
    agent.wait_briefly()
    assert made.all_closed(), "an answer was left open"
    assert not [till for till in line._queues.values() if till.open]


@pytest.fixture
def node(stand, tmp_path, agent):
    made = Node(stand, tmp_path)
    made.middleware.limiter = BandwidthLimiter("x", STORAGE_NODE, stand.log)
    line = lined(made.middleware.limiter, agent, tmp_path, STORAGE_NODE, "127.0.0.1:6200")
    yield made
    line.disconnect()
    agent.wait_briefly()
    assert not [till for till in line._queues.values() if till.open]


def told(agent, *lines):
    """Totals by flow and device in the agent's last report."""
    for line in lines:
        line.tick()
    agent.wait_briefly()
    return {(row.flow, row.device): row for used in agent.received(TrafficReport) for row in used.rows}


def put(stand, body=BODY, **more):
    assert stand("PUT", PATH, body=body, **more).status_int == 201


def test_uploads_and_downloads_are_counted_and_unchanged(stand, agent):
    put(stand)
    assert stand("GET", PATH).body == BODY
    assert stand("GET", PATH, Range="bytes=5-14").body == BODY[5:15]
    answer = stand("GET", PATH, Range="bytes=0-9,20-29")
    assert answer.status_int == 206
    found = told(agent, stand.proxy.limiter.client)
    assert {key: (row.moved, row.open) for key, row in found.items()} == {
        (Flow("AUTH_a", PUT), ""): (len(BODY), 0),
        (ONE, ""): (len(BODY) + 10 + len(answer.body), 0),
    }


def test_metrics_count_bytes_while_they_pass(stand):
    put(stand)
    proxy = stand.proxy

    def metrics():
        proxy._report()
        rows = {path: values for path, _, values in proxy.meter.changed()}
        found = dict(zip(proxy.meter.names, rows["AUTH_a"], strict=True))
        return found["GET_BW"], found["ACTIVE_REQUESTS"]

    response = Request.blank(PATH).get_response(proxy)
    first = next(iter(response.app_iter))
    assert 0 < len(first) < len(BODY)
    for _ in range(2):
        assert metrics() == (len(first), 1)
    rest = list(response.app_iter)
    response.app_iter.close()
    assert metrics() == (len(first) + sum(map(len, rest)), 0)
    assert metrics() == (len(BODY), 0)


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("HEAD", PATH), ("GET", "/v1/AUTH_a/c"), ("POST", PATH)])
def test_requests_for_no_object_are_not_counted(stand, agent, method, path):
    stand(method, path)
    assert told(agent, stand.proxy.limiter.client) == {}
    assert agent.received(Ask) == []


def test_a_download_never_exceeds_its_credit(stand, agent):
    put(stand)
    agent.answer = grant_nothing
    response = Request.blank(PATH).get_response(stand.proxy)
    pieces = []
    thread = green.start_green(lambda: pieces.extend(response.app_iter))
    agent.wait_briefly()
    assert pieces == []
    given = 0
    for size in (65536, 65535, 1, 100_000, 100_000):
        agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, size, 1e6),)))
        given += size
        agent.wait_briefly()
        assert given - 65536 < sum(map(len, pieces)) <= given
    agent.join(thread)
    assert b"".join(pieces) == BODY
    response.app_iter.close()


def test_an_upload_is_charged_before_swift_reads_it(stand, agent):
    agent.answer = grant_nothing
    thread = green.start_green(put, stand, BODY)
    agent.wait_until(lambda: agent.received(Ask))
    agent.wait_briefly()
    assert PATH not in stand.swift.objects
    agent.answer = grant_all
    agent.send(Grant((CreditGrant("AUTH_a", "", "PUT", 0, len(BODY), 1e6),)))
    agent.join(thread)
    assert stand.swift.objects[PATH].body == BODY


def test_a_disconnected_download_returns_its_credit(stand, agent):
    put(stand)
    agent.answer = grant_all
    agent.given.clear()
    response = Request.blank(PATH).get_response(stand.proxy)
    first = []
    agent.join(green.start_green(lambda: first.append(next(iter(response.app_iter)))))
    response.app_iter.close()
    agent.wait_until(lambda: agent.given == {ONE: len(first[0])})


def test_a_disconnected_upload_returns_its_credit(stand, agent):
    class Torn(io.BytesIO):
        def read(self, *args):
            raise OSError("gone")

    agent.answer = grant_all
    request = Request.blank(PATH, method="PUT", environ={"wsgi.input": Torn(), "CONTENT_LENGTH": "10"})
    response = request.get_response(stand.proxy)
    assert (response.status_int, response.body[:6]) == (499, b"<html>")
    agent.wait_until(lambda: agent.given == {Flow("AUTH_a", PUT): 0})


@pytest.mark.parametrize("status", ["304 Not Modified", "404 Not Found", "412 No", "416 No Such Range", "503 No"])
def test_error_bodies_stay_lists_and_are_not_charged(stand, agent, status):
    agent.answer = grant_nothing
    line = stand.proxy.limiter.client
    error = [b"no such object"]
    assert (
        stand.proxy.limiter.throttle_download({}, TARGET, UpstreamResponse.build(status, [], error), Candidates(()))
        is error
    )
    assert line._queues == {}
    assert told(agent, line) == {}


def test_a_container_with_an_objective_is_a_flow_of_its_own(stand, agent):
    speaks = assignment(path="AUTH_a/c", kind=BANDWIDTH, keyword="bandwidth", params={"get_bw": 1e6})
    stand.set_policies(paths={"AUTH_a/c": [speaks]})
    put(stand)
    stand("GET", PATH)
    assert set(told(agent, stand.proxy.limiter.client)) == {
        (Flow("AUTH_a", PUT), ""),
        (Flow("AUTH_a", GET, 0, "c"), ""),
    }


@pytest.mark.parametrize("known", ["header", "infocache", "nothing"])
def test_the_storage_policy_comes_from_header_or_infocache(stand, agent, known, monkeypatch):
    monkeypatch.setattr(limiter, "POLICIES", [0, 1, 2])
    env = {
        "header": {"HTTP_X_BACKEND_STORAGE_POLICY_INDEX": "2"},
        "infocache": {"swift.infocache": {"container/AUTH_a/c": {"storage_policy": "2"}}},
        "nothing": {},
    }[known]
    put(stand, env=env)
    stand("GET", PATH, env=env)
    flows = {flow for flow, _ in told(agent, stand.proxy.limiter.client)}
    # the container of a PUT is requested in any case
    known_late = {Flow("AUTH_a", PUT, 0)} if known == "nothing" else set()
    assert {flow.policy for flow in flows - known_late} == {ANY_POLICY if known == "nothing" else 2}


def test_a_single_storage_policy_is_assumed(stand, agent):
    put(stand)
    assert {flow.policy for flow, _ in told(agent, stand.proxy.limiter.client)} == {0}


def test_an_account_name_that_is_not_utf8_can_be_sent(stand, agent):
    path = "/v1/AUTH_caf\xff/c/o"
    stand.swift.objects[path] = None
    stand.swift.objects.clear()
    stand("PUT", "/v1/AUTH_a/c/o", body=b"x", env={"PATH_INFO": path})
    (row,) = told(agent, stand.proxy.limiter.client).values()
    assert row.account == "AUTH_caf\N{REPLACEMENT CHARACTER}"


# -- the object server ----------------------------------------------------------------------------------


def test_an_object_server_counts_uploads_and_holds_back_downloads(stand, node, agent):
    agent.answer = grant_nothing
    stand.proxy.limiter.client = None
    put(stand)
    assert agent.received(Ask) == []
    agent.answer = grant_all
    response = []
    thread = green.start_green(lambda: response.append(stand("GET", PATH, Range="bytes=100-")))
    agent.join(thread)
    assert response[0].body == BODY[100:]
    found = told(agent, node.middleware.limiter.client)
    assert {key: row.moved for key, row in found.items()} == {
        (Flow("AUTH_a", PUT), "sda1"): len(BODY),
        (ONE, "sda1"): len(BODY) - 100,
    }
    objects = {(one.oid, one.method, one.range) for used in agent.received(TrafficReport) for one in used.objects}
    assert objects == {("c/o", "PUT", "0-end"), ("c/o", "GET", "100-end")}
    assert {hello.server for hello in agent.received(CreditHello)} == {"", "127.0.0.1:6200"}


@pytest.mark.parametrize(("place", "below"), [(PROXY, {GET: 0.0}), (STORAGE_NODE, {GET: 3e6})])
def test_ceilings_are_set_on_the_side_that_enforces_them(stand, node, agent, place, below):
    params = {"max_get_bw": 3e6, "max_put_bw": 2e6}
    speaks = assignment(path="AUTH_a", kind=BANDWIDTH, keyword="bandwidth", params=params, place=place)
    stand.set_policies(speaks)
    node.set_policies(FixedPolicies(speaks))
    put(stand)
    agent.answer = grant_all
    responses = []
    agent.join(green.start_green(lambda: responses.append(stand("GET", PATH))))
    assert responses[0].body == BODY
    lines = stand.proxy.limiter.client, node.middleware.limiter.client
    found = [{flow.method: till.account.ceiling for flow, till in line._queues.items()} for line in lines]
    assert found == [{PUT: 2e6, GET: 3e6 - below[GET]}, below]


def test_replication_reads_are_not_counted(stand, node, agent):
    put(stand)
    agent.messages.clear()
    env = Request.blank("/sda1/7/AUTH_a/c/o", headers={"X-Backend-Replication": "True"}).environ
    assert Request(env).get_response(node.middleware).body == BODY
    assert agent.received(Ask) == []
    assert not [flow for flow, _ in told(agent, node.middleware.limiter.client) if flow.method == GET]


def test_at_a_proxy_what_a_daemon_reads_and_stores_is_counted(stand, agent):
    stand("PUT", PATH, body=BODY, env={"HTTP_X_BACKEND_REPLICATION": "True"})
    assert [flow.method for flow, _ in told(agent, stand.proxy.limiter.client)] == [PUT]


@pytest.mark.parametrize(
    ("server", "env", "address"),
    [
        (("10.0.0.1", "6200"), {}, "10.0.0.1:6200"),
        (("0.0.0.0", "6200"), {"SERVER_NAME": "10.0.0.7", "SERVER_PORT": "9"}, "10.0.0.7:6200"),
        (("", ""), {"SERVER_NAME": "10.0.0.7", "SERVER_PORT": "6201"}, "10.0.0.7:6201"),
    ],
)
def test_an_object_server_is_known_by_its_address(server, env, address):
    log = logging.getLogger("test")
    assert BandwidthLimiter("x", STORAGE_NODE, log, server)._address(env) == address
    assert BandwidthLimiter("x", PROXY, log, server)._address(env) == ""


@pytest.mark.parametrize(
    ("header", "span"),
    [("", "0-end"), ("bytes=5-9", "5-9"), ("bytes=5-", "5-end"), ("bytes=-5", "-5"), ("bytes=0-1,5-6", "0-1,5-6")],
)
def test_a_range_is_reported_as_requested(header, span):
    assert limiter._span(header) == span


# -- the parts ------------------------------------------------------------------------------------------


class Paid:
    """A transfer that only records calls."""

    account = TokenAccount(ONE)

    def __init__(self):
        self.sizes = []
        self.closed = 0

    def acquire(self, size):
        self.sizes.append(size)

    def acquire_some(self, size):
        self.acquire(size)
        return size

    def close(self):
        self.closed += 1


def test_a_throttled_input_reads_like_its_source():
    paid = Paid()
    body = UploadInput(io.BytesIO(b"abcdef\nghi"), lambda: paid)
    assert (body.read(0), paid.closed) == (b"", 0)
    assert body.read(3) == b"abc"
    assert body.readline() == b"def\n"
    assert body.read() == b"ghi"
    assert paid.sizes == [3, 4, 3]
    assert (body.read(5), paid.closed) == (b"", 1)
    body.close()
    assert body.seekable()


def test_a_throttled_body_passes_each_piece_and_closes():
    class Body(list):
        closed = 0

        def close(self):
            self.closed += 1

    paid, source = Paid(), Body([b"abc", b"", b"de"])
    body = ThrottledBody(source, paid)
    pieces = list(body)
    assert all(one is other for one, other in zip(pieces, source, strict=True))
    body.close()
    assert (paid.sizes, paid.closed, source.closed) == ([3, 0, 2], 1, 1)


def test_nothing_is_throttled_before_the_worker_has_started(tmp_path):
    stand = ProxyStack(tmp_path)
    put(stand)
    assert stand("GET", PATH).body == BODY
    assert stand.proxy.limiter.client is None


@pytest.mark.parametrize("answer", [grant_free, grant_all], ids=["free", "held back"])
@pytest.mark.parametrize("range_", ["", "bytes=3-70000", "bytes=0-3,100-200"])
def test_both_middlewares_pass_the_wsgi_validator(stand, node, agent, answer, range_):
    agent.answer = answer
    stand.proxy.handler.app = validator(node)
    before = validator(stand.proxy)

    def request(method, body=b"", **headers):
        env = Request.blank(PATH, method=method, body=body, headers=headers).environ
        env |= {"SCRIPT_NAME": "", "wsgi.run_once": False}
        seen = {}

        def start(status, fields, exc_info=None):
            seen["status"] = status

        answer = before(env, start)
        try:
            return seen["status"], b"".join(answer)
        finally:
            answer.close()

    done = []

    def story():
        done.append(request("PUT", BODY, **{"Content-Type": "text/plain"}))
        done.append(request("GET", **({"Range": range_} if range_ else {})))

    agent.join(green.start_green(story))
    assert done[0][0] == "201 Created"
    assert done[1][0].startswith("206" if range_ else "200")
    if not range_:
        assert done[1][1] == BODY
