"""The konnector as a worker: its messages to its agent."""

import os
import signal
import socket
import time
from dataclasses import replace

import pytest

from sluice_block.datapath.records import DETACHING
from sluice_block.konnector.agent_link import AgentLink
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
    machine.attach()  # its tenant is not known
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


def test_a_filter_that_is_uploaded_later_is_announced_and_why_it_is_refused_then(machine, agent, link):
    link.tick()
    first, _ = agent.accept()
    with first:
        machine.upload("rot", b"code")
        link.tick()
        second, _ = agent.accept()
        with second:
            hello = Hello.decode(second.recv(65536))
            assert hello.actions == {**dict.fromkeys(ACTIONS, 1), "rot": 1}
            assert hello.worker == Hello.decode(first.recv(65536)).worker
            link.tick()
            Counters.decode(second.recv(65536))  # on the same connection
            upload = machine.uploads["rot"]
            machine.konnector.filters.refusals.add("rot", 1, upload.sha256, "it was ended by SIGSEGV", "a volume")
            link.tick()
            third, _ = agent.accept()
            with third:
                hello = Hello.decode(third.recv(65536))
                assert "rot" not in hello.actions
                assert hello.refused_code == {upload.sha256: "it was ended by SIGSEGV"}
                machine.upload("rot", b"better code")
                link.tick()
                fourth, _ = agent.accept()
                with fourth:
                    hello = Hello.decode(fourth.recv(65536))
                assert (hello.actions["rot"], hello.refused_code) == (2, {})


def test_a_volume_that_was_taken_over_is_asked_about_until_it_is_confirmed(machine, agent, link):
    key = machine.attach(attachment="a1").attachment.volume
    machine.start()
    link._konnector = machine.konnector
    link.tick()
    connection, _ = agent.accept()
    with connection:
        hello = Hello.decode(connection.recv(65536))
        assert (hello.unconfirmed_volumes, hello.volume_faults) == ({key: "a1"}, {})
    machine.konnector.confirm(key, "a1")
    link.tick()
    connection, _ = agent.accept()
    with connection:
        assert Hello.decode(connection.recv(65536)).unconfirmed_volumes == {}


def test_a_volume_that_waits_for_long_is_a_fault(machine, agent, link):
    volume = machine.attach(attachment="a1")
    key = volume.attachment.volume
    volume.confirmed = False
    for waited, faults in ((29.0, {}), (31.0, {key: "it is not attached again before the control plane has said"})):
        volume.waiting_since = time.monotonic() - waited
        link._renew_hello()
        assert {name: fault[:58] for name, fault in link._hello.volume_faults.items()} == faults


def test_a_volume_that_broke_is_told_with_the_reason_until_it_is_detached(machine, agent, link):
    volume = machine.attach()
    key = volume.attachment.volume
    with open(volume.device(), "rb"):
        front = next(filter(None, volume.export.processes()))
        os.kill(front.pid, signal.SIGKILL)
        assert front.wait(10)
        machine.konnector.check()
        link.tick()
        connection, _ = agent.accept()
        with connection:
            reason = Hello.decode(connection.recv(65536)).volume_faults[key]
        assert f"its front has ended while `{volume.device()}` is in use" in reason
    volume.keep(replace(volume.attachment, state=DETACHING, fault="its attach failed"))
    link.tick()
    connection, _ = agent.accept()
    with connection:
        assert Hello.decode(connection.recv(65536)).volume_faults == {key: "its attach failed"}
    machine.konnector.detach(key)
    link.tick()
    connection, _ = agent.accept()
    with connection:
        assert Hello.decode(connection.recv(65536)).volume_faults == {}
