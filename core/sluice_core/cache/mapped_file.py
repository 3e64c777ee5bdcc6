"""A file of fixed size that processes map into their memory, created whole.

The file is allocated at once: a write into a hole that a full disk cannot fill kills the process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: An unsigned integer of eight bytes, which is written atomically.
WORD: Final = struct.Struct("<Q")


def map_file(
    path: Path, size: int, magic: int, prepare: Callable[[mmap.mmap], None] = lambda new: None, group: str = ""
) -> mmap.mmap:
    """Map the file at ``path``; create it if it is missing, or has another size or another ``magic``.

    A new file is created beside it and then linked or renamed, so that no process sees a partial file.  Its first word
    is ``magic``.

    :param prepare: writes the rest of a new file
    :param group: the Unix group of a new file

    :raises OSError: when there is no space or no permission
    """
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                memory = mmap.mmap(descriptor, size) if os.fstat(descriptor).st_size == size else None
            finally:
                os.close(descriptor)
            if memory is not None and WORD.unpack_from(memory, 0)[0] == magic:
                return memory
        _make(path, size, magic, prepare, group)
    raise OSError(f"`{path}` is not what was written there")


def _make(path: Path, size: int, magic: int, prepare: Callable[[mmap.mmap], None], group: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o660)
    try:
        os.fchmod(descriptor, 0o660)
        if group:
            shutil.chown(fresh, group=group)
        os.posix_fallocate(descriptor, 0, size)
        with mmap.mmap(descriptor, size) as memory:
            prepare(memory)
            WORD.pack_into(memory, 0, magic)
        if path.exists():
            fresh.replace(path)  # the existing file is not usable
        else:
            with contextlib.suppress(FileExistsError):  # another process created it first
                os.link(fresh, path)
    finally:
        os.close(descriptor)
        fresh.unlink(missing_ok=True)
