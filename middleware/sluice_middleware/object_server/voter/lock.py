"""The lock of an object on a device, for all threads and worker processes that serve the device.

It is a byte of the file ``lock`` in the folder of records: a lock of an open file (``F_OFD_SETLK``, fcntl(2)) on the
byte whose offset is the beginning of the object's hash.  Neither of the nearer places will do.  The record is replaced
at each write, and a lock would stay with the old file.  The folder of the object is renamed when Swift quarantines it
and removed when a replicator has moved the object away, while others hold locks on it.  Folders of the records would
have to be made for each plain object, too, since plain writes take the lock as well: between a promise and the state
that is stored under it, no plain object may slip in that had checked before the promise.

The kernel releases the lock when the process ends.  Waiting is polling: a thread of Swift's pool that waited in the
kernel could keep the holder from the thread that it needs to go on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import DiskFileNoSpace

#: ``struct flock`` of 64-bit Linux: type, whence, start, length, process.
_FLOCK: Final = struct.Struct("hhqqi4x")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
#: Others hold the lock; POSIX allows both.
_HELD: Final = (errno.EAGAIN, errno.EACCES)
#: Hexadecimal digits of a hash that fit into an offset.
_DIGITS: Final = 15
#: Seconds between attempts, from the first to the longest, and until a caller gives up.
_FIRST: Final = 0.001
_LONGEST: Final = 0.016
_TIMEOUT: Final = 10.0


class Busy(SluiceError):
    """Others hold the lock for too long, as on a device that hangs."""

    status = 503


class ObjectLock:
    """A context manager, used once.

    :param folder: of the device's records
    :param name: the hash of the object
    """

    __slots__ = ("_byte", "_file", "_folder")

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._byte = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, int(name[:_DIGITS], 16), 1, 0)

    def __enter__(self) -> None:
        """
        :raises Busy: after 10 s
        :raises DiskFileNoSpace: when the file of the locks cannot be made
        """
        try:
            self._file = os.open(self._folder + "/lock", _FLAGS, 0o600)
        except OSError as error:
            self._file = self._make(error)
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, self._byte)
        except OSError as error:
            self._wait(error)

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def _make(self, error: OSError) -> int:
        """Open the file, which could not be opened for the reason ``error``."""
        try:
            if not isinstance(error, FileNotFoundError):
                raise error
            os.makedirs(self._folder, exist_ok=True)
            return os.open(self._folder + "/lock", _FLAGS, 0o600)
        except OSError as failure:
            if failure.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFileNoSpace from failure
            raise

    def _wait(self, error: OSError) -> None:
        """Wait for the lock, which could not be got for the reason ``error``."""
        wait, until = _FIRST, time.monotonic() + _TIMEOUT
        try:
            while True:
                if error.errno not in _HELD:
                    raise error
                if time.monotonic() > until:
                    raise Busy(f"the lock of an object in `{self._folder}` was held for {_TIMEOUT:g} s")
                green.pause(wait)
                wait = min(2 * wait, _LONGEST)
                try:
                    fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, self._byte)
                    return
                except OSError as failure:
                    error = failure
        except BaseException:
            os.close(self._file)
            raise
