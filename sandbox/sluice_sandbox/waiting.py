"""Waiting for descriptors in green and plain threads: only the calling thread waits.

Swift replaces ``select`` with a green one at its start; therefore it is looked up at each call.  The green one may be
given *one* descriptor in *one* direction only.  With more, every descriptor that becomes ready in the same round of the
hub calls back: the first one wakes the green thread, and the others wake it again, wherever it waits then, and the
thread takes the wake-up for that of a queue or a socket.  So several descriptors are put into an epoll, which is one
readable descriptor.  The green ``select`` has no epoll; a second copy of that module has.

Sluice's descriptors never block in the kernel.  Bytes are moved by ``readv`` and ``writev``: unlike ``read`` and
``write`` eventlet does not patch them, so "no bytes now" stays an answer.
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
    """Return a copy of the unpatched module ``select``."""
    spec = find_spec("select")
    if spec is None or spec.loader is None:
        raise ImportError("no module `select`")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PLAIN: Any = _copy_select()


def wait(readers: Sequence[int], writers: Sequence[int], timeout: float) -> bool:
    """Wait until one of the descriptors is ready; return False when none was within ``timeout`` seconds."""
    timeout = max(0.0, timeout)
    wanted = dict.fromkeys(readers, _PLAIN.POLLIN)
    for descriptor in writers:
        wanted[descriptor] = wanted.get(descriptor, 0) | _PLAIN.POLLOUT
    if hasattr(select, "poll"):  # not green; and the plain select fails for large descriptors
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
    """Return the available bytes, through ``buffer``: None when there are none, empty at the end."""
    try:
        return bytes(buffer[: os.readv(descriptor, [buffer])])
    except BlockingIOError:
        return None


def write_now(descriptor: int, data: memoryview) -> int:
    """Return the number of bytes of ``data`` that were written now."""
    try:
        return os.writev(descriptor, [data])
    except BlockingIOError:
        return 0


def pipe() -> tuple[int, int]:
    """Return both ends of a pipe with a large buffer, not inherited."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    # refused to an ordinary user with too many pages of pipes: then it keeps the default size
    with suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return reader, writer


def unread_bytes(descriptor: int) -> int:
    """Return the number of unread bytes in the pipe with this reading end."""
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4)
    count: int = struct.unpack("i", answer)[0]
    return count
