"""The datagrams of SBus, compared with Storlets' own C structure as its library documents it."""

import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_sandbox.storlets import wire


@given(st.text(max_size=300), st.text(max_size=300), st.integers(0, 16))
def test_a_packed_datagram_unpacks_to_its_parts(metadata, message, descriptors):
    assert wire.unpack(wire.pack(metadata, message, descriptors)) == (descriptors, metadata, message)


def test_the_head_is_three_integers_and_the_end_a_zero_byte():
    data = wire.pack("ab", "cde", 5)
    assert data == struct.pack("iii", 5, 2, 3) + b"abcde\0"


def test_an_oversized_datagram_is_refused():
    room = wire.MAX_MESSAGE - 13
    assert len(wire.pack("", "x" * room, 0)) == wire.MAX_MESSAGE
    with pytest.raises(ValueError, match="4097 bytes, expected at most 4096"):
        wire.pack("", "x" * (room + 1), 0)


@given(st.binary(max_size=100))
def test_garbage_is_never_more_than_an_error(data):
    try:
        descriptors, metadata, message = wire.unpack(data)
    except ValueError:
        return
    assert descriptors >= 0
    assert len(metadata.encode()) + len(message.encode()) <= len(data)


def test_descriptors_travel_along(tmp_path):
    reader, writer = os.pipe()
    with wire.listen(str(tmp_path / "socket")) as channel:
        wire.send(str(tmp_path / "socket"), wire.pack("m", "c", 1), [writer])
        os.close(writer)
        descriptors, metadata, message = wire.receive(channel)
    assert (metadata, message, len(descriptors)) == ("m", "c", 1)
    os.write(descriptors[0], b"through")
    os.close(descriptors[0])
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_a_message_with_other_descriptors_than_it_says_is_refused_and_leaks_none(tmp_path):
    path = str(tmp_path / "socket")
    before = len(os.listdir("/proc/self/fd"))
    with wire.listen(path) as channel:
        for count in (0, 2):
            wire.send(path, wire.pack("m", "c", 1), [0] * count)
            with pytest.raises(ValueError, match=f"{count} descriptors, expected 1"):
                wire.receive(channel)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_queue_raises_at_once(tmp_path):
    path = str(tmp_path / "socket")

    def fill():
        for _ in range(100_000):
            wire.send(path, b"x", [])

    with wire.listen(path), pytest.raises(BlockingIOError):
        fill()


def test_a_link_is_not_followed(tmp_path):
    with wire.listen(str(tmp_path / "real")) as channel:
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with pytest.raises(ConnectionRefusedError):
            wire.send(str(tmp_path / "link"), b"x", [])
        channel.setblocking(False)
        with pytest.raises(BlockingIOError):
            channel.recv(10)


@pytest.mark.parametrize(
    ("make", "error"),
    [(lambda path: None, FileNotFoundError), (lambda path: path.write_text(""), ConnectionRefusedError)],
)
def test_a_missing_listener_is_an_error(tmp_path, make, error):
    make(tmp_path / "socket")
    with pytest.raises(error):
        wire.send(str(tmp_path / "socket"), b"x", [])


def test_a_socket_whose_owner_is_gone_refuses(tmp_path):
    wire.listen(str(tmp_path / "socket")).close()
    with pytest.raises(ConnectionRefusedError):
        wire.send(str(tmp_path / "socket"), b"x", [])


def test_a_path_longer_than_any_address_works(tmp_path):
    deep = tmp_path.joinpath(*["d" * 50] * 4)
    deep.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        here = os.open(deep, os.O_PATH)
        channel.bind(f"/proc/self/fd/{here}/s")
        os.close(here)
        wire.send(str(deep / "s"), b"hello", [])
        assert channel.recv(10) == b"hello"
