"""SSYNC under a cap: the charges of a sender, and that it sends the same bytes as before."""

import time
from types import SimpleNamespace

import pytest
from tests.support.middleware.object_server import CODED, StorageNode, swift_conf

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import REPLICATION_FLOW
from sluice_middleware.bandwidth import client_registry
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.token_account import BURST
from sluice_middleware.replication.daemons import Sender, ThrottledFile
from sluice_middleware.replication.replication_throttle import AgentThrottle, ThrottledCopy
from sluice_middleware.swift import green
from sluice_middleware.swift.daemon_api import RebuildingECDiskFileStream
from sluice_middleware.swift.diskfile_api import POLICIES

#: Swift's sender does not close files that it opens only for their metadata.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BODY = b"".join(b"%d some line of text\n" % number for number in range(9000))
#: Bytes per second that an agent grants.
RATE = 0.8e6


class Purse(ThrottledCopy):
    """Grants at once; ``paid`` are the charges, ``open``: a transfer is open; ``held`` keeps callers waiting."""

    def __init__(self):
        self.paid = []
        self.open_now = 0
        self.devices = []
        self.held = None

    def open(self, device):
        self.devices.append(device)
        return self

    def acquire(self, size):
        assert self.open_now
        if self.held is not None:
            self.held.wait(20)
        self.paid.append(size)

    def __enter__(self):
        self.open_now += 1
        return self

    def __exit__(self, *_):
        self.open_now -= 1


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def pair(tmp_path):
    return [StorageNode(tmp_path / name) for name in ("left", "right")]


@pytest.fixture
def paid(ssync):
    """SSYNC of one partition, charged to ``purse``."""

    def send(source, target, purse, **daemon):
        return ssync(source, target, sender=Sender, throttle=purse, **daemon)

    return send


def test_the_ssync_sender_is_charged_once_per_byte(pair, paid):
    left, right = pair
    purse = Purse()
    left.put(BODY, headers={"X-Object-Meta-A": "1"})
    left.put(b"small", name="a/c/small")
    left.put(b"", name="a/c/empty")
    success, deletable = paid(left, right, purse)
    assert (success, len(deletable)) == (True, 3)
    assert sum(purse.paid) == len(BODY) + len(b"small")
    assert max(purse.paid) <= 65536
    assert purse.devices == ["sda"]
    assert purse.open_now == 0
    for name, body in (("a/c/o", BODY), ("a/c/small", b"small"), ("a/c/empty", b"")):
        assert right.get(name=name).body == body
        assert dict(left.get(name=name).headers) == dict(right.get(name=name).headers)


def test_objects_the_receiver_has_are_not_charged(pair, paid):
    left, right = pair
    left.put(BODY)
    paid(left, right, Purse())
    purse = Purse()
    assert paid(left, right, purse)[0]
    assert purse.paid == []


def test_a_sender_throttled_beyond_node_timeout_still_sends(pair, paid):
    left, right = pair
    left.put(BODY)
    purse = Purse()
    purse.held = green.InterruptibleSleep()
    green.call_later(1.0, lambda: setattr(purse, "held", None))
    green.call_later(1.1, purse.held.wake)
    assert paid(left, right, purse, node_timeout=0.5)[0]
    assert right.get().body == BODY


@pytest.fixture
def line(path, agent, monkeypatch):
    """A storage node's client of the agent."""
    made = CreditClient(path, STORAGE_NODE)
    made.tick()
    monkeypatch.setattr(client_registry, "shared_client", lambda path, **more: made)
    yield made
    made.disconnect()
    agent.wait_briefly()


def moved(line):
    line._update_counters()
    return line._counters.counter(REPLICATION_FLOW, "sda").moved


def test_when_the_agent_dies_the_last_rate_stays_for_a_transfer_that_runs(pair, paid, agent, line):
    left, right = pair
    agent.set_rate(REPLICATION_FLOW, RATE)
    body = BODY * 10
    left.put(body)
    sent = green.start_green(paid, left, right, AgentThrottle({"sluice_agent_socket": "named"}))
    agent.wait_until(lambda: moved(line) >= len(body) // 5)
    agent.close()
    begun, before = time.monotonic(), moved(line)
    line.tick()  # no agent answers
    agent.join(sent)
    seconds, size = time.monotonic() - begun, len(body) - before
    assert size > RATE
    assert RATE * (seconds + BURST) >= size
    assert 0.5 * RATE * seconds <= size  # a machine may be busy
    assert sent.wait()[0]
    assert moved(line) == len(body)
    assert right.get().body == body


def test_a_transfer_ends_when_the_other_node_is_gone(pair):
    left, _ = pair
    left.put(BODY)
    purse = Purse()
    daemon = SimpleNamespace(_df_router=left.server._diskfile_router, logger=left.log, conn_timeout=1, throttle=purse)
    job = {"device": "sda", "partition": "0", "policy": POLICIES[0]}
    place = {"replication_ip": "127.0.0.1", "replication_port": 1, "device": "sda", "index": 0}
    assert Sender(daemon, place, job, ["abc"])() == (False, {})
    assert purse.open_now == 0


def test_a_rebuilt_fragment_is_charged_for_its_reads():
    """Each was read from as many nodes as there are data fragments."""
    purse = Purse()
    stream = RebuildingECDiskFileStream({"Content-Length": "6"}, 0, iter([b"abc", b"def"]))
    job = {"device": "sda", "partition": "0", "policy": POLICIES[CODED]}
    sender = Sender(SimpleNamespace(throttle=purse, _df_router={POLICIES[CODED]: None}, node_timeout=5), {}, job, [])
    sent = []
    with purse as sender._copy:
        sender.send_subrequest(SimpleNamespace(send=sent.append), "PUT", "/a/c/o", {}, stream)
    assert b"".join(sent[1:]) == b"3\r\nabc\r\n3\r\ndef\r\n"
    assert purse.paid == [9, 9]


def test_a_deletion_is_not_charged(pair, paid):
    left, right = pair
    left.put(BODY)
    paid(left, right, Purse())
    left.request("DELETE")
    purse = Purse()
    assert paid(left, right, purse)[0]
    assert purse.paid == []
    assert right.get().status.startswith("404")


def test_a_throttled_file_has_the_length_of_its_file():
    assert ThrottledFile(SimpleNamespace(content_length=7), Purse()).content_length == 7
