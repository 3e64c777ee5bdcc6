"""Short bodies: counted as a whole and not wrapped, unless an objective may limit them."""

import io
import os
from collections import Counter

import pytest
from tests.support.middleware.credit_agent import FakeAgent, grant_free

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, Flow
from sluice_core.messages.credit import PriorityUpdate, Renegotiate, TrafficReport
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.bodies import ThrottledBody
from sluice_middleware.bandwidth.limiter import SHORT, BandwidthLimiter
from sluice_middleware.wsgi.response import UpstreamResponse

TARGET = ("AUTH_a", "c", "o")
ENV = {"PATH_INFO": "/sda1/0/AUTH_a/c/o"}


class Nothing:
    """Policies without any rule for an object."""

    bounded = False
    own_account = frozenset()

    def ceiling(self, *_):
        return 1e6


class Bounded(Nothing):
    bounded = True


class OfContainer(Nothing):
    own_account = frozenset({GET})


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(os.path.relpath(tmp_path / "agent.sock"), grant_free)
    yield made
    made.close()
    made.wait_briefly()


@pytest.fixture(params=[PROXY, STORAGE_NODE])
def limiter(request, agent, tmp_path):
    """A limiter whose account of GETs is unlimited."""
    made = BandwidthLimiter("x", request.param, None)
    made.client = CreditClient(os.path.relpath(tmp_path / "agent.sock"), request.param)
    made.client.tick()
    list(download(made, 1))
    agent.wait_until(lambda: made.client._queues[Flow("AUTH_a", GET)].account.free)
    yield made
    made.client.disconnect()
    agent.wait_briefly()
    assert not [queue for queue in made.client._queues.values() if queue.open]


def answer(size):
    return UpstreamResponse.build("200 OK", [("Content-Length", str(size))], iter([b"x" * size]))


def download(limiter, size, **env):
    body = limiter.throttle_download({**ENV, **env}, TARGET, answer(size), Nothing())
    if isinstance(body, ThrottledBody):
        yield from body
        body.close()


def reports(agent, limiter):
    limiter.client.tick()
    agent.wait_briefly()
    return agent.received(TrafficReport)


def moved(agent, limiter, flow):
    """Bytes of a flow in the agent's last report."""
    rows = [row for one in reports(agent, limiter) for row in one.rows if row.flow == flow]
    return rows[-1].moved


def is_untouched(limiter, size=1000, policies=Nothing):
    given = answer(size)
    body = limiter.throttle_download(dict(ENV), TARGET, given, policies())
    if body is given.body:
        return True
    body.close()
    return False


def test_a_short_body_goes_untouched_and_is_counted(limiter, agent):
    assert is_untouched(limiter)
    longest = SHORT[limiter.client.side]
    assert is_untouched(limiter, longest)
    assert moved(agent, limiter, Flow("AUTH_a", GET)) == 1 + 1000 + longest
    assert not limiter.client._transfers


def test_a_longer_body_is_a_transfer(limiter):
    assert not is_untouched(limiter, SHORT[limiter.client.side] + 1)


def test_while_an_objective_is_in_force_every_body_is_a_transfer(limiter, agent):
    agent.send(PriorityUpdate((), active=True))
    agent.wait_until(lambda: limiter.client.state.active)
    assert not is_untouched(limiter)


def test_a_flow_that_is_to_have_credit_is_a_transfer(limiter, agent):
    agent.send(Renegotiate())
    agent.wait_until(lambda: not limiter.client._queues[Flow("AUTH_a", GET)].account.free)
    assert not is_untouched(limiter)


@pytest.mark.parametrize("policies", [Bounded, OfContainer])
def test_what_policies_say_of_the_object_is_heeded(limiter, policies):
    assert not is_untouched(limiter, policies=policies)


def test_a_flow_that_nobody_has_heard_of_is_a_transfer_first(limiter):
    body = limiter.throttle_download(dict(ENV), ("AUTH_new", "c", "o"), answer(10), Nothing())
    assert isinstance(body, ThrottledBody)
    body.close()


class Input:
    """A server's own input, which counts the bytes read."""

    position = 0


@pytest.mark.parametrize("limiter", [STORAGE_NODE], indirect=True)
def test_a_short_upload_is_counted_at_an_object_server(limiter, agent):
    env = {**ENV, "REQUEST_METHOD": "PUT", "CONTENT_LENGTH": "700", "wsgi.input": Input()}
    assert limiter.throttle_upload(env, TARGET, Nothing()) is None
    assert moved(agent, limiter, Flow("AUTH_a", PUT)) == 700


@pytest.mark.parametrize("limiter", [STORAGE_NODE], indirect=True)
def test_objects_that_passed_at_once_are_reported_by_name(limiter, agent):
    for _ in range(3):
        assert is_untouched(limiter, 500)
    list(download(limiter, 100, HTTP_RANGE="bytes=5-104"))
    found = Counter()
    for report in reports(agent, limiter):
        for one in report.objects:
            found[one.device, one.oid, one.method, one.range] += 1
    assert set(found) == {("sda1", "c/o", GET, "0-end"), ("sda1", "c/o", GET, "5-104")}


def upload(limiter, size, length=None):
    """The input that Swift reads; an account of uploads is unlimited from the second upload on."""
    announced = str(size if length is None else length)
    env = {**ENV, "REQUEST_METHOD": "PUT", "wsgi.input": io.BytesIO(b"x" * size), "CONTENT_LENGTH": announced}
    made = limiter.throttle_upload(env, TARGET, Nothing())
    assert env["wsgi.input"] is made
    return made


@pytest.fixture
def proxy_limiter(limiter, agent):
    """A limiter that has seen an upload of one byte."""
    first = upload(limiter, 1)
    assert first.read() == b"x"
    first.close()
    agent.wait_until(lambda: limiter.client._queues[Flow("AUTH_a", PUT)].account.free)
    return limiter


at_a_proxy = pytest.mark.parametrize("limiter", [PROXY], indirect=True)


@at_a_proxy
def test_a_short_upload_is_counted_at_a_proxy_when_swift_reads_it(proxy_limiter, agent):
    refused, body = upload(proxy_limiter, 500), upload(proxy_limiter, 1000)
    assert body.read(600) + body.read(600) + body.read(600) == b"x" * 1000
    assert not proxy_limiter.client._transfers
    for one in (refused, body):
        one.close()
    assert moved(agent, proxy_limiter, Flow("AUTH_a", PUT)) == 1001


@at_a_proxy
@pytest.mark.parametrize(("size", "length"), [(SHORT[PROXY] + 1, None), (1000, 0)])
def test_an_upload_that_is_long_or_of_unknown_length_is_a_transfer(proxy_limiter, agent, size, length):
    body = upload(proxy_limiter, size, length)
    body.read(10)
    assert proxy_limiter.client._transfers
    body.close()
    assert moved(agent, proxy_limiter, Flow("AUTH_a", PUT)) == 11


@at_a_proxy
def test_while_an_objective_is_in_force_every_upload_is_a_transfer(proxy_limiter, agent):
    agent.send(PriorityUpdate((), active=True))
    agent.wait_until(lambda: proxy_limiter.client.state.active)
    body = upload(proxy_limiter, 10)
    assert body.read() == b"x" * 10
    assert proxy_limiter.client._transfers
    body.close()
