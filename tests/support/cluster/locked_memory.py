"""Files that are locked in memory.

The kernel may drop its page cache at any moment: a machine that lends its memory to others reclaims it
even without a need here.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError

_FAILED: Final = ctypes.c_void_p(-1).value
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mlock.argtypes = _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@contextlib.contextmanager
def locked(paths: Iterable[Path]) -> Iterator[None]:
    """Keep all bytes of files, at their present length, in memory until the context ends (mlock(2)).

    :raises OSError: when a file cannot be read
    :raises PeerError: when the kernel refuses, as beyond ``ulimit -l``
    """
    with contextlib.ExitStack() as stack:
        for path in paths:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not size:
                    continue
                place = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
            if place == _FAILED:
                raise _refused("mmap", path)
            stack.callback(_libc.munmap, place, size)
            if _libc.mlock(place, size):
                raise _refused("mlock", path)
        yield


def _refused(call: str, path: Path) -> PeerError:
    return PeerError(f"{call} of `{path}`: {os.strerror(ctypes.get_errno())}")


__all__ = ["locked"]
