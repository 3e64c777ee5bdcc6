"""Pipes that suit whoever calls: a green thread in Swift waits alone (``waiting``).

No descriptor of ours ever blocks in the kernel.  Bytes are moved by ``readv`` and ``writev``: unlike ``read`` and
``write`` nobody makes them green, so "nothing now" stays an answer.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from contextlib import suppress
from typing import Final

from sluice_sandbox.waiting import pause as pause
from sluice_sandbox.waiting import wait as wait

PIPE_SIZE: Final = 256 * 1024


def read_now(descriptor: int, buffer: memoryview) -> bytes | None:
    """What is there now, through ``buffer``: None when nothing is, empty at the end."""
    try:
        return bytes(buffer[: os.readv(descriptor, [buffer])])
    except BlockingIOError:
        return None


def write_now(descriptor: int, data: memoryview) -> int:
    """How many bytes of ``data`` went through now."""
    try:
        return os.writev(descriptor, [data])
    except BlockingIOError:
        return 0


def pipe() -> tuple[int, int]:
    """Both ends of a pipe of good size, not inherited."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    # refused to an ordinary user who owns too many pages of pipes already: then it stays as small as any
    with suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return reader, writer


def unread_bytes(descriptor: int) -> int:
    """How many bytes stand in the pipe whose reading end this is."""
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4)
    count: int = struct.unpack("i", answer)[0]
    return count
