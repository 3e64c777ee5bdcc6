"""Whether the page cache has given bytes of a file.

A read that must not wait (``RWF_NOWAIT``) is not enough to check this: where bytes are missing, the kernel starts to
read ahead, with the I/O account and priority of the calling thread.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

#: Number of the system call ``cachestat``, known to kernels from 6.5 on, the same on all machines (``unistd.h``).
_CALL: Final = 451
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

#: Keeps the interpreter's lock: the call takes some microseconds, and never waits.
_libc: Final = ctypes.PyDLL(None)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent"))


def is_cached(descriptor: int, offset: int, length: int) -> bool:
    """Whether the page cache has all of ``length`` (at least 1) bytes, and no disk is still reading the last of them.

    On kernels without ``cachestat`` only the last byte is checked.
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
