"""One address before several servers: in turn, skipping those that refuse; connections end with their server."""

import contextlib
import socket
import threading

import pytest
from tests.support.cluster.balancer import Balancer

from sluice_aio.base.ports import free_port

pytestmark = pytest.mark.service


@contextlib.contextmanager
def server(word):
    """Answers ``word`` to each line, and disconnects after ``bye``."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    connection.sendall(word)
                    if line == b"bye\n":
                        break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def said(port, *lines):
    """The responses to ``lines`` on one connection, until it ends."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        for line in lines:
            connection.sendall(line)
        with connection.makefile("rb") as answer:
            return answer.read()


def test_connections_go_to_the_servers_in_turn_and_end_with_them():
    with server(b"a") as first, server(b"b") as second, Balancer([first, second]) as balancer:
        assert [said(balancer.port, b"hello\n", b"bye\n") for _ in range(4)] == [b"aa", b"bb", b"aa", b"bb"]


def test_a_server_that_refuses_connections_is_skipped():
    with server(b"b") as second, Balancer([free_port(), second]) as balancer:
        assert [said(balancer.port, b"bye\n") for _ in range(3)] == [b"b", b"b", b"b"]


def test_without_servers_the_connection_ends_at_once():
    with Balancer([free_port(), free_port()]) as balancer:
        assert said(balancer.port) == b""


def test_the_balancer_stops_with_open_connections():
    with server(b"a") as first:
        with Balancer([first]) as balancer:
            connection = socket.create_connection(("127.0.0.1", balancer.port), 10)
            connection.sendall(b"hello\n")
            assert connection.recv(1) == b"a"
        assert connection.recv(1) == b""
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", balancer.port), 10)
