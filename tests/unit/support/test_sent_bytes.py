"""The bytes that servers read are neither those that clients could send nor those that kernels buffer."""

import contextlib
import socket
import time

import pytest
from tests.support.cluster.sent_bytes import Sent

from sluice_aio.base.ports import HOST


@pytest.fixture
def pair():
    with socket.create_server((HOST, 0)) as server, socket.create_connection(server.getsockname()) as client:
        there, _ = server.accept()
        with there:
            yield client, there


def read(server, size):
    while size:
        size -= len(server.recv(size))


def taken(sent, size):
    """Poll until ``size`` bytes are counted: fewer are while the kernel moves bytes between ends, but never more."""
    found, deadline = sent.newly_taken(), time.monotonic() + 10
    while found < size:
        assert time.monotonic() < deadline, f"{found} bytes counted, not {size}"
        found += sent.newly_taken()
    return found


def test_bytes_count_when_the_server_reads_them(pair):
    client, server = pair
    sent = Sent()
    link = sent.add(client)
    assert sent.newly_taken() == 0
    client.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while True:  # until both ends are full
            link.sent += client.send(bytes(65536))
    assert link.sent > 65536
    assert sent.newly_taken() == 0
    read(server, 1000)
    assert taken(sent, 1000) == 1000
    assert sent.newly_taken() == 0
    read(server, 50_000)
    read(server, 14_000)
    assert taken(sent, 64_000) == 64_000
    read(server, link.sent - 65_000)
    assert taken(sent, link.sent - 65_000) == link.sent - 65_000


def test_what_the_kernel_sent_on_waits_at_the_server(pair):
    client, server = pair
    sent = Sent()
    link = sent.add(client)
    link.sent += client.send(b"x" * 5000)
    server.recv(1, socket.MSG_PEEK)  # it has arrived
    assert sent.newly_taken() == 0
    read(server, 5000)
    assert taken(sent, 5000) == 5000


def test_an_answer_says_that_all_was_taken_also_of_a_connection_that_is_closed(pair):
    client, _ = pair
    sent = Sent()
    link = sent.add(client)
    link.sent += client.send(b"x" * 5000)
    sent.drop(link)
    sent.taken(link)
    assert sent.newly_taken() == 5000
    assert sent.newly_taken() == 0


def test_what_waits_on_a_connection_that_breaks_is_never_taken(pair):
    client, server = pair
    sent = Sent()
    link = sent.add(client)
    link.sent += client.send(b"x" * 5000)
    read(server, 2000)
    assert taken(sent, 2000) == 2000
    sent.drop(link)
    sent.drop(link)
    assert sent.newly_taken() == 0
