"""Uploads at an object server, which are counted and not held back: by the server's own input if that counts."""

import io
import os

import pytest

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import PUT, Flow
from sluice_core.messages.credit import CreditHello, TrafficReport
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.bodies import UploadInput
from sluice_middleware.bandwidth.limiter import BandwidthLimiter

BODY = os.urandom(300_000)
FLOW = Flow("AUTH_a", PUT)
TARGET = ("AUTH_a", "c", "o")


class NoPolicies:
    """Policies without any rule for an object."""

    own_account = frozenset()
    bounded = False


@pytest.fixture
def regulator(agent, path):
    made = BandwidthLimiter("x", STORAGE_NODE, None)
    made.client = CreditClient(path, STORAGE_NODE, "127.0.0.1:6200")
    made.client.tick()
    agent.wait_until(lambda: agent.received(CreditHello))
    yield made
    made.client.disconnect()
    agent.wait_briefly()


def counted(agent, line):
    """The agent's last report: bytes, and open transfers."""
    line.tick()
    agent.wait_briefly()
    rows = [
        row for used in agent.received(TrafficReport) for row in used.rows if (row.flow, row.device) == (FLOW, "sda1")
    ]
    return rows[-1].moved, rows[-1].open


class Counting:
    """A server's own input, which counts the bytes read."""

    def __init__(self, body):
        self._body = io.BytesIO(body)
        self.position = 0

    def read(self, size=-1):
        data = self._body.read(size)
        self.position += len(data)
        return data


def test_an_upload_is_counted_by_the_position_of_the_servers_input(regulator, agent):
    source = Counting(BODY)
    env = {"PATH_INFO": "/sda1/0/AUTH_a/c/o", "REQUEST_METHOD": "PUT", "wsgi.input": source}
    transfer = regulator.throttle_upload(env, TARGET, NoPolicies)
    assert env["wsgi.input"] is source
    source.read(100_000)
    assert counted(agent, regulator.client) == (100_000, 1)
    source.read(5)
    transfer.close()
    source.read()  # bytes that a server discards are not counted
    assert counted(agent, regulator.client) == (100_005, 0)
    objects = [(one.oid, one.method) for used in agent.received(TrafficReport) for one in used.objects]
    assert objects == [("c/o", "PUT")] * 2


@pytest.mark.parametrize("known", [{"HTTP_TRANSFER_ENCODING": "chunked"}, {"wsgi.input": io.BytesIO(BODY)}])
def test_an_upload_without_a_position_is_counted_as_it_is_read(regulator, agent, known):
    env = {"PATH_INFO": "/sda1/0/AUTH_a/c/o", "REQUEST_METHOD": "PUT", "wsgi.input": Counting(BODY), **known}
    paying = regulator.throttle_upload(env, TARGET, NoPolicies)
    assert isinstance(env["wsgi.input"], UploadInput)
    assert env["wsgi.input"].read(10) == BODY[:10]
    paying.close()
    assert counted(agent, regulator.client) == (10, 0)
