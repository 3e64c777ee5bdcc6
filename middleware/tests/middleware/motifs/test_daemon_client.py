"""A worker's handling of its motif daemon's replies, and of a silent daemon."""

import socket
import threading

import pytest

from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_client import DaemonAway, DaemonClient
from sluice_middleware.motifs.daemon_protocol import CHANGE, OPEN, WorkerCall, WorkerReply, receive_frame, send_frame
from sluice_middleware.wsgi.response import RefusedRequest


@pytest.fixture
def serve(tmp_path):
    """A daemon that answers one call by ``speak(call, connection)``."""
    path = str(tmp_path / "motifs.sock")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    threads = []

    def start(speak):
        def run():
            connection, _ = listening.accept()
            with connection:
                speak(WorkerCall.decode(receive_frame(connection)), connection)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return DaemonClient(path)

    yield start
    for thread in threads:
        thread.join(10)
    listening.close()


def replying(*frames, **reply):
    def speak(call, connection):
        send_frame(connection, WorkerReply(**reply).encode())
        for frame in frames:
            send_frame(connection, frame)

    return speak


def test_bytes_follow_until_an_empty_frame(serve):
    granted = serve(replying(b"one", b"two", b"", status=200)).call(WorkerCall(OPEN, "a/c/o"))
    assert list(granted) == [b"one", b"two"]


def test_bytes_without_an_empty_frame_are_not_to_be_trusted(serve):
    granted = serve(replying(b"one", status=200)).call(WorkerCall(OPEN, "a/c/o"))
    with pytest.raises(PeerError, match="not those of the object"):
        list(granted)


def test_a_frame_that_is_cut_is_told(serve):
    def speak(call, connection):
        send_frame(connection, WorkerReply(200).encode())
        connection.sendall(b"\0\0\0\x09four")

    with pytest.raises(PeerError, match="within a frame"):
        list(serve(speak).call(WorkerCall(OPEN, "a/c/o")))


@pytest.mark.parametrize(("status", "kind"), [(400, RefusedRequest), (409, RefusedRequest), (503, DaemonAway)])
def test_a_refusal_says_why(serve, status, kind):
    with pytest.raises(kind, match="because") as refused:
        serve(replying(status=status, reason="because")).call(WorkerCall(OPEN, "a/c/o"))
    assert refused.value.status == status


def test_a_grant_holds_until_the_worker_ends_the_connection(serve):
    ended = threading.Event()

    def speak(call, connection):
        send_frame(connection, WorkerReply(204).encode())
        if not connection.recv(1):
            ended.set()

    with serve(speak).call(WorkerCall(CHANGE, "a/c/o")):
        assert not ended.is_set()
    assert ended.wait(10)


@pytest.mark.parametrize("path", ["", "/nowhere/motifs.sock"])
def test_a_daemon_that_is_away_is_worth_trying_again(path):
    with pytest.raises(DaemonAway) as away:
        DaemonClient(path).call(WorkerCall(OPEN, "a/c/o"))
    assert away.value.retry_after > 0


def test_a_daemon_that_hangs_up_is_away(serve):
    with pytest.raises(DaemonAway, match="ended the connection"):
        serve(lambda call, connection: None).call(WorkerCall(OPEN, "a/c/o"))
