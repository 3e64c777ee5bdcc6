"""Servers start, answer, end and leave nothing behind."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile

import pytest

from sluice_aio.base import ports
from sluice_aio.base.backing_servers import MemcachedServer, RedisServer
from sluice_aio.base.ports import HOST, free_port, free_ports, probe
from sluice_core.errors import PeerError

pytestmark = pytest.mark.service


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("make", [RedisServer, MemcachedServer])
def test_a_server_serves_between_start_and_stop(make, tmp_path):
    server = make(free_port(), tmp_path / "data", tied=True)
    assert (server.pid, server.pids, server.running) == (None, (), False)
    with server:
        assert server.running
        assert server.answers()
        assert HOST in server.url
        assert server.log.exists()
        pid = server.pid
        server.start()
        assert server.pid == pid, "it runs already"
    assert not server.running
    assert gone(pid)
    server.stop()


def test_redis_keeps_what_was_written_when_it_is_killed(tmp_path):
    with RedisServer(free_port(), tmp_path, tied=True) as server:
        assert probe(server.port, b"SET a 1\r\n") == b"+OK\r\n"
        server.kill()
        assert probe(server.port, b"PING\r\n") == b""
        server.start()
        server.wait_ready()
        assert probe(server.port, b"GET a\r\n") == b"$1\r\n1\r\n"
        server.restart()
        assert probe(server.port, b"GET a\r\n") == b"$1\r\n1\r\n"


def test_a_server_that_cannot_start_says_why_at_once(tmp_path):
    with RedisServer(free_port(), tmp_path / "a", tied=True) as first:
        second = RedisServer(first.port, tmp_path / "b", tied=True)
        second.start()
        second.answers = lambda: False  # the first one would answer in its place
        with pytest.raises(PeerError, match=r"redis ended instead of serving: [\s\S]*[Aa]ddress already in use"):
            second.wait_ready()
        second.stop()


def test_a_server_that_never_serves_is_given_up_in_time(tmp_path):
    server = RedisServer(free_port(), tmp_path, tied=True)
    server.answers = lambda: False
    server.start()
    with pytest.raises(PeerError, match="does not serve"):
        server.wait_ready(0.2)
    server.stop()


def test_a_program_that_is_not_installed_is_told(tmp_path):
    server = RedisServer(free_port(), tmp_path)
    server.argv = lambda: ["no-such-program"]
    with pytest.raises(PeerError, match="cannot start `no-such-program`"):
        server.start()
    assert not server.running


def test_free_ports_are_different_and_no_outgoing_connection_gets_one():
    first_outgoing = int(ports._OUTGOING.read_text().split()[0])
    found = free_ports(50)
    assert len(set(found)) == 50
    assert all(1024 < port < first_outgoing for port in found)


def test_a_port_is_given_again_after_all_others():
    given = [port for _ in range(10) for port in free_ports(3)]
    assert len(set(given)) == 30


@contextlib.contextmanager
def another_process(**environment):
    """Another process that searches free ports; returns those it got."""
    script = "from sluice_aio.base.ports import free_ports; print(*free_ports(40), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield {int(port) for port in process.stdout.readline().split()}
        process.stdin.close()


def test_no_two_processes_get_the_same_ports():
    with another_process() as first, another_process() as second:
        assert len(first | second | set(free_ports(40))) == 120


def test_a_process_too_many_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(ports, "_SLICES", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        another_process(TMPDIR=str(tmp_path)),
        pytest.raises(PeerError, match=f"1 processes look for free ports already, see `{tmp_path}/"),
    ):
        ports._slice.__wrapped__(os.getpid())


def test_a_kernel_that_leaves_no_port_to_servers_is_refused(monkeypatch, tmp_path):
    narrow = tmp_path / "range"
    narrow.write_text("1024 60999")
    monkeypatch.setattr(ports, "_OUTGOING", narrow)
    with pytest.raises(PeerError, match="outgoing connections take ports from 1024, expected 20032"):
        ports._slice.__wrapped__(os.getpid())


def test_a_port_on_which_somebody_listens_is_not_free(monkeypatch):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_slice", lambda _: (range(port, port + 1), itertools.cycle([port])))
        with pytest.raises(PeerError, match=f"0 ports from {port} to {port} are free, expected 1"):
            free_port()
