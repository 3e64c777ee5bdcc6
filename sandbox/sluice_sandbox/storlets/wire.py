"""The wire of Storlets' SBus, in Python: one datagram on a unix socket, with descriptors.

``int files, int metadata bytes, int message bytes``, the metadata (JSON, one entry per descriptor), the
message (JSON: command, parameters, task), one closing zero byte; the descriptors as ``SCM_RIGHTS``.
This is what Storlets' C library reads and writes, so its Java daemon understands it; the library itself is loaded again
for each message, logs to a syslog that a container does not have, and waits without a limit.

It runs on both sides, in the container too: it imports only the standard library.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import stat
import struct
from collections.abc import Sequence
from typing import Final

#: The C library reads at most this number of bytes.
MAX_MESSAGE: Final = 4096
MAX_DESCRIPTORS: Final = 16
#: The answer of a factory or a daemon that cannot fork: its container has no free processes.
NO_PROCESSES: Final = "no more processes"
_HEAD: Final = struct.Struct("=iii")


def pack(metadata: str, message: str, descriptors: int) -> bytes:
    """Return the bytes of one datagram.

    :raises ValueError: when the receiver would cut it
    """
    about, what = metadata.encode(), message.encode()
    data = _HEAD.pack(descriptors, len(about), len(what)) + about + what + b"\0"
    if len(data) > MAX_MESSAGE:
        raise ValueError(f"{len(data)} bytes, expected at most {MAX_MESSAGE}")
    return data


def unpack(data: bytes) -> tuple[int, str, str]:
    """Return the number of descriptors, the metadata and the message.

    :raises ValueError: when it is not such a datagram
    """
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are no message")
    descriptors, about, what = _HEAD.unpack_from(data)
    start, end = _HEAD.size + about, _HEAD.size + about + what
    if min(descriptors, about, what) < 0 or not end <= len(data) <= end + 1:
        raise ValueError("a message whose lengths do not add up")
    return descriptors, data[_HEAD.size : start].decode(), data[start:end].decode()


def send(path: str, data: bytes, descriptors: Sequence[int]) -> None:
    """Send a datagram to the socket at ``path`` without waiting.

    The folder of the socket belongs to the user of the filters, so a link in its place is not followed; and since the
    socket is named by descriptor, the length of ``path`` does not matter.

    :raises FileNotFoundError: when the socket is missing
    :raises ConnectionRefusedError: when no process listens there any more
    :raises BlockingIOError: when its queue is full
    """
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(place).st_mode):
            raise ConnectionRefusedError(f"`{path}` is not a socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            # the original, also where eventlet patched sockets to wait: the caller handles a full queue
            channel.sendmsg([data], rights, socket.MSG_DONTWAIT, f"/proc/self/fd/{place}")
    finally:
        os.close(place)


def listen(path: str) -> socket.socket:
    """Listen on a socket at ``path``, in place of an existing file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.bind(path)
    os.chmod(path, 0o600)
    return channel


def receive(channel: socket.socket) -> tuple[list[int], str, str]:
    """Return the next datagram: its descriptors (which the caller closes), the metadata and the message.

    :raises ValueError: when it is not valid; its descriptors are closed
    """
    size = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, flags, _ = channel.recvmsg(MAX_MESSAGE, size, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, rights in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(rights[: len(rights) - len(rights) % descriptors.itemsize])
    try:
        expected, metadata, message = unpack(data)
        if expected != len(descriptors) or flags & socket.MSG_CTRUNC:
            raise ValueError(f"{len(descriptors)} descriptors, expected {expected}")
    except ValueError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return list(descriptors), metadata, message
