"""Waiting for descriptors in whatever thread there is: a green thread waits alone, a plain one as it always did.

Swift replaces ``select`` with a green one at its start; therefore it is looked up at each call.  That one may be
given *one* descriptor in *one* direction only.  With more, all that become ready in the same round of the hub
call back, the first of them wakes the green thread, and the others wake it again, wherever it waits by then:
it takes their answer for that of a queue or a socket.  So several are put into an epoll, which is one
descriptor that can be read.  ``select`` has no epoll left where it is green; a second copy of that module has.

No descriptor of ours ever blocks in the kernel.  Bytes are moved by ``readv`` and ``writev``: unlike ``read`` and
``write`` nobody makes them green, so "nothing now" stays an answer.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec, module_from_spec
from typing import Any, Final


def _copy_select() -> Any:
    """A copy of the module ``select`` as it is before anybody makes it green."""
    spec = find_spec("select")
    if spec is None or spec.loader is None:
        raise ImportError("no module `select`")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PLAIN: Any = _copy_select()


def wait(readers: Sequence[int], writers: Sequence[int], timeout: float) -> bool:
    """Until one of the descriptors is ready; False when none was within ``timeout`` seconds."""
    timeout = max(0.0, timeout)
    wanted = dict.fromkeys(readers, _PLAIN.POLLIN)
    for descriptor in writers:
        wanted[descriptor] = wanted.get(descriptor, 0) | _PLAIN.POLLOUT
    if hasattr(select, "poll"):  # not green; and the plain select knows no large descriptors
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        return bool(poll.poll(timeout * 1000))
    if len(readers) + len(writers) < 2:
        return any(select.select(readers, writers, [], timeout))
    with _PLAIN.epoll() as together:
        for descriptor, events in wanted.items():
            together.register(descriptor, events)  # EPOLLIN and EPOLLOUT are the same numbers
        return any(select.select([together.fileno()], [], [], timeout))


def pause(seconds: float) -> None:
    """Sleep for ``seconds``, without green threads."""
    select.select([], [], [], seconds)


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
