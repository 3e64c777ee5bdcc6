"""The sequential write and read speed of disks, all measured at the same time."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from sluice_core.errors import CallerError, PeerError

#: Bytes of one read or write.
CHUNK: Final = 1024 * 1024
#: The fraction of a disk's free space that its file may take.
_MODEST: Final = 0.1
_NO_DIRECT: Final = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """Bytes per second of one disk while all others are busy, too; ``direct``: measured with O_DIRECT."""

    path: Path
    read: float
    write: float
    direct: bool


def measure(
    disks: Sequence[Path], seconds: float, size: int, say: Callable[[str], None] = lambda _: None
) -> list[DiskSpeed]:
    """Write to all disks for ``seconds``, over and over the same ``size`` bytes of each; then read.

    :raises CallerError: when a folder does not exist, or its disk has no room
    :raises PeerError: when a disk fails
    """
    sizes = [_allowed(path, size) for path in disks]
    together = threading.Barrier(len(disks))
    with ThreadPoolExecutor(len(disks)) as threads:
        say(f"writes to {len(disks)} disk(s), then reads, {seconds:g} s each")
        running = [
            threads.submit(_measure, path, most, seconds, together) for path, most in zip(disks, sizes, strict=True)
        ]
        _raise_failed(running)
        return [one.result() for one in running]


def _allowed(path: Path, size: int) -> int:
    try:
        status = os.statvfs(path)
    except OSError as error:
        raise CallerError(f"cannot use `{path}`: {error.strerror}") from error
    most = min(size, int(status.f_bavail * status.f_frsize * _MODEST))
    if most < CHUNK:
        raise CallerError(f"no room on `{path}`: a tenth of what is free must hold {CHUNK} bytes")
    return most - most % CHUNK


def _raise_failed(running: Sequence[Future[DiskSpeed]]) -> None:
    """Raise the error that ended the measurement, not those of disks that stopped because of it."""
    wait(running)
    for one in running:
        error = one.exception()
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error


def _measure(path: Path, size: int, seconds: float, together: threading.Barrier) -> DiskSpeed:
    try:
        with TemporaryFile(dir=path, buffering=0) as file, mmap.mmap(-1, CHUNK) as buffer:
            buffer[:] = os.urandom(CHUNK)  # random, since some disks compress
            run = _Run(file.fileno(), buffer, size, seconds)
            together.wait()
            write = run.write()
            together.wait()
            return DiskSpeed(path, run.read(), write, run.direct)
    except OSError as error:
        together.abort()
        raise PeerError(f"cannot measure `{path}`: {error.strerror or error}") from error
    except BaseException:
        together.abort()  # the other disks must not wait for this one
        raise


@dataclass(eq=False)
class _Run:
    """One open file, ``size`` bytes at most."""

    number: int
    buffer: mmap.mmap
    size: int
    seconds: float

    def __post_init__(self) -> None:
        self._there = 0
        self.direct = self._go_direct()

    def write(self) -> float:
        """Return bytes per second, including the time of the final fsync."""
        started = time.monotonic()
        written = 0
        while not written or time.monotonic() - started < self.seconds:
            written += os.pwritev(self.number, [self.buffer], written % self.size)
            self._there = max(self._there, min(written, self.size))
        os.fsync(self.number)
        return written / (time.monotonic() - started)

    def read(self) -> float:
        """Return bytes per second of repeated reads of the written bytes."""
        started = time.monotonic()
        got = 0
        while not got or time.monotonic() - started < self.seconds:
            if not self.direct and not got % self._there:
                os.posix_fadvise(self.number, 0, 0, os.POSIX_FADV_DONTNEED)
            got += os.preadv(self.number, [self.buffer], got % self._there)
        return got / (time.monotonic() - started)

    def _go_direct(self) -> bool:
        """Set O_DIRECT; return False if the file system does not support it."""
        flags = fcntl.fcntl(self.number, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self.number, fcntl.F_SETFL, flags | os.O_DIRECT)
            os.pwritev(self.number, [self.buffer], 0)
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            fcntl.fcntl(self.number, fcntl.F_SETFL, flags)
            return False
        return True
