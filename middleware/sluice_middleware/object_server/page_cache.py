"""Which bytes of a file are in the page cache.

A read that must not wait (``RWF_NOWAIT``) alone is no way to find out: where something is missing, the kernel begins to
read ahead for it, on the account and with the priority of whoever only wanted to know.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

#: By which kernels from 6.5 on know ``cachestat``, the same on all machines (``unistd.h``).
_CALL: Final = 451
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

#: Does not give the interpreter's lock away: the call takes some microseconds, and never waits.
_libc: Final = ctypes.PyDLL(None)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent"))


def is_cached(descriptor: int, offset: int, length: int) -> bool:
    """Whether the page cache has all of ``length`` (at least 1) bytes, and no disk is still bringing the last of them.

    Where the kernel does not tell of all, the last one speaks for them.
    """
    counts = _Counts()
    asked = _Range(offset, length)
    last = offset + length - 1
    if _libc.syscall(_CALL, descriptor, ctypes.byref(asked), ctypes.byref(counts), 0) == 0:
        found: int = counts.cached
        if found < last // _PAGE - offset // _PAGE + 1:
            return False
    try:
        return os.preadv(descriptor, [bytearray(1)], last, os.RWF_NOWAIT) == 1
    except OSError:
        return False
