"""Waiting for descriptors in whatever thread there is: a green thread waits alone, a plain one as it always did.

Swift replaces ``select`` with a green one at its start; therefore it is looked up at each call.  That one may be
given *one* descriptor in *one* direction only.  With more, all that become ready in the same round of the hub
call back, the first of them wakes the green thread, and the others wake it again, wherever it waits by then:
it takes their answer for that of a queue or a socket.  So several are put into an epoll, which is one
descriptor that can be read.  ``select`` has no epoll left where it is green, hence the library call.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
from collections.abc import Sequence
from typing import Final

_IN: Final = 0x1
_OUT: Final = 0x4
_ADD: Final = 1
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


class _Event(ctypes.Structure):
    """``struct epoll_event``, packed where Linux packs it."""

    if platform.machine() == "x86_64":
        _pack_ = 1
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


def wait(readers: Sequence[int], writers: Sequence[int], timeout: float) -> bool:
    """Until one of the descriptors is ready; False when none was within ``timeout`` seconds."""
    timeout = max(0.0, timeout)
    if hasattr(select, "poll"):  # not green; and the plain select knows no large descriptors
        poll = select.poll()
        for descriptor, events in _wanted(readers, writers).items():
            poll.register(descriptor, events)  # POLLIN and POLLOUT are the same numbers
        return bool(poll.poll(timeout * 1000))
    if len(readers) + len(writers) < 2:
        return any(select.select(readers, writers, [], timeout))
    together = _checked(_LIBRARY.epoll_create1(os.O_CLOEXEC))
    try:
        for descriptor, events in _wanted(readers, writers).items():
            event = _Event(events, 0)
            _checked(_LIBRARY.epoll_ctl(together, _ADD, descriptor, ctypes.byref(event)))
        return any(select.select([together], [], [], timeout))
    finally:
        os.close(together)


def pause(seconds: float) -> None:
    """Let ``seconds`` go by."""
    select.select([], [], [], seconds)


def _wanted(readers: Sequence[int], writers: Sequence[int]) -> dict[int, int]:
    found = dict.fromkeys(readers, _IN)
    for descriptor in writers:
        found[descriptor] = found.get(descriptor, 0) | _OUT
    return found


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
