"""Bodies that are lists, as those of small objects from the cache: unlimited ones stay lists, others pass in pieces."""

import os

import pytest
from tests.support.middleware.credit_agent import FakeAgent, grant_all, grant_nothing

from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Flow
from sluice_core.messages.credit import CreditGrant, Grant
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.swift import green
from sluice_middleware.wsgi.response import UpstreamResponse

TARGET = ("AUTH_a", "c", "o")
FLOW = Flow("AUTH_a", GET)
KIB = 1024
BODY = [os.urandom(200 * KIB), b"", b"end"]
WHOLE = b"".join(BODY)


class Body(list):
    """A list that must be closed."""

    closed = 0

    def close(self):
        self.closed += 1


class NoPolicies:
    own_account = frozenset()
    bounded = False


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(os.path.relpath(tmp_path / "agent.sock"), grant_nothing)
    yield made
    made.close()
    made.wait_briefly()


@pytest.fixture
def regulator(agent, tmp_path):
    made = BandwidthLimiter("x", PROXY, None)
    made.client = CreditClient(os.path.relpath(tmp_path / "agent.sock"), PROXY)
    made.client.tick()
    yield made
    made.client.disconnect()
    agent.wait_briefly()
    assert not [till for till in made.client._queues.values() if till.open]


def download(regulator, body, status="200 OK", headers=()):
    answer = UpstreamResponse.build(status, list(headers), body)
    return regulator.throttle_download({}, TARGET, answer, NoPolicies), answer.headers


def moved(agent, line):
    line.tick()
    agent.wait_briefly()
    return agent.samples()[-1].moved


def taken(agent, body):
    pieces = []
    agent.join(green.start_green(lambda: pieces.extend(body)))
    return pieces


def known(agent, regulator, answer):
    """Make the flow known to the worker."""
    agent.answer = answer
    transfer = regulator.client.open(FLOW)
    agent.join(green.start_green(transfer.acquire, 1))
    transfer.close()


def test_a_list_body_of_an_unlimited_flow_stays_a_list_and_is_counted(agent, regulator):
    known(agent, regulator, lambda asked: CreditGrant(*asked[:4], -1, -1.0))
    body = Body(BODY)
    found, headers = download(regulator, body)
    assert found is body
    assert headers == []
    assert moved(agent, regulator.client) == len(WHOLE) + 1


def test_a_list_body_stays_a_list_without_an_agent(agent, regulator):
    regulator.client.disconnect()
    body = Body(BODY)
    assert download(regulator, body)[0] is body


def test_a_list_body_passes_no_byte_without_credit(agent, regulator):
    body = Body(BODY)
    found, _ = download(regulator, body)
    pieces = []
    thread = green.start_green(lambda: pieces.extend(found))
    agent.wait_briefly()
    assert pieces == []
    given = 0
    for size in (KIB, 63 * KIB, 64 * KIB, 100 * KIB):
        agent.send(Grant((CreditGrant("AUTH_a", "", GET, 0, size, 1e6),)))
        given += size
        agent.wait_briefly()
        assert given - 64 * KIB < sum(map(len, pieces)) <= given
    assert regulator.client._queues[FLOW].account.credit >= 0
    agent.answer = grant_all
    agent.join(thread)
    assert b"".join(pieces) == WHOLE
    assert max(map(len, pieces)) <= 64 * KIB
    assert body.closed == 0
    found.close()
    assert body.closed == 1


def test_many_list_bodies_keep_to_the_rate_and_leave_no_debt(agent, regulator):
    agent.set_rate(FLOW, 4e6)
    bodies = [download(regulator, Body([os.urandom(500_000)]))[0] for _ in range(4)]
    passed = []

    def take(body):
        for piece in body:
            passed.append(len(piece))
        body.close()

    agent.join(*(green.start_green(take, body) for body in bodies))
    assert sum(passed) == 2_000_000
    account = regulator.client._queues[FLOW].account
    assert account.credit >= 0
    agent.wait_briefly()
    assert agent.given[FLOW] >= 2_000_000 + account.credit - 64 * KIB


def test_a_disconnect_in_the_middle_charges_only_passed_bytes(agent, regulator):
    known(agent, regulator, grant_all)
    agent.wait_until(lambda: agent.given == {FLOW: 1})
    body = Body(BODY)
    found, _ = download(regulator, body)
    first = []
    agent.join(green.start_green(lambda: first.append(next(iter(found)))))
    found.close()
    agent.wait_until(lambda: agent.given == {FLOW: 1 + len(first[0])})
    assert (len(first[0]), body.closed) == (64 * KIB, 1)


@pytest.mark.parametrize(("status", "headers"), [("200 OK", ()), ("206 Partial Content", (("content-length", "7"),))])
def test_a_rechunked_list_body_still_has_a_content_length(agent, regulator, status, headers):
    found, told = download(regulator, Body(BODY), status, headers)
    assert told == [*(headers or (("Content-Length", str(len(WHOLE))),))]
    agent.answer = grant_all
    agent.wait_until(lambda: agent.requests())
    agent.send(Grant((CreditGrant("AUTH_a", "", GET, 0, len(WHOLE), 1e9),)))
    assert b"".join(taken(agent, found)) == WHOLE
    found.close()
