"""The konnector as a worker: what its agent hears."""

import os
import socket

import pytest

from sluice_block.konnector.agent.link import AgentLink
from sluice_core.messages.nodes import Counters, Hello

ACTIONS = ("throttling", "bandwidth", "luks", "nop", "xor", "bitrev", "readahead", "cache")
pytestmark = pytest.mark.service


@pytest.fixture
def agent(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(tmp_path / "agent.sock"))
        listening.listen()
        yield listening


@pytest.fixture
def link(machine, tmp_path):
    made = AgentLink(str(tmp_path / "agent.sock"), machine.konnector, "https://192.0.2.7:8790", lambda: "generation")
    yield made
    made.disconnect()


def test_it_says_what_it_can_do_and_then_what_it_counted(machine, agent, link):
    volume = machine.attach(account="AUTH_acme")
    machine.attach()  # whose tenant is not known
    link.tick()
    connection, _ = agent.accept()
    with connection, open(volume.device(), "r+b", buffering=0) as device:
        hello = Hello.decode(connection.recv(65536))
        assert (hello.role, hello.url, hello.pid) == ("konnector", "https://192.0.2.7:8790", os.getpid())
        assert hello.actions == dict.fromkeys(ACTIONS, 1)
        first = Counters.decode(connection.recv(65536))
        assert first.snapshot == "generation"
        path = f"AUTH_acme/{volume.attachment.volume}"
        assert [row[0] for row in first.rows] == [path]
        device.write(bytes(8192))
        os.fsync(device.fileno())
        link.tick()
        ((name, born, values),) = Counters.decode(connection.recv(65536)).rows
        told = dict(zip(hello.metrics, values, strict=True))
        assert (name, born) == first.rows[0][:2]
        assert told["VOLUME_WRITE_BW"] == 8192
        link.tick()
        assert Counters.decode(connection.recv(65536)).rows == ()


def test_without_an_agent_nothing_waits_and_the_next_one_hears_all(machine, agent, link):
    volume = machine.attach(account="AUTH_acme")
    link.tick()
    first, _ = agent.accept()
    first.close()
    link.tick()
    link.tick()
    second, _ = agent.accept()
    with second:
        assert Hello.decode(second.recv(65536)).worker == link._hello.worker
        assert Counters.decode(second.recv(65536)).rows[0][0] == f"AUTH_acme/{volume.attachment.volume}"
