"""The journal of a node's writes: workers append records, the agent reads them and informs the other nodes.

A record is the object's digest and a timestamp (:mod:`sluice_core.cache.write_marks`), 32 bytes.  A record never lies
across two pages and is appended by one call.  So the kernel keeps records of several processes apart, and a record
survives the worker that appended it.  Workers do not wait for the agent; without an agent, the journal only uses disk
space.

The agent replaces a file that has grown by a new one, and reads the old one for some seconds more.  A worker checks
*after* it wrote whether its file is still the one at that path; if not, it writes into the new file too.  A record that
came too late for the agent is therefore written twice, and the second copy is read.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice_core.cache.write_marks import DIGEST_SIZE, WriteMarks

#: The agent begins a new file above this size, in bytes.
TURN: Final = 1 << 20
#: Above this size no agent reads: a worker discards the unread records and reports the loss.
LIMIT: Final = 8 << 20

_NAME: Final = "told"
_RECORD: Final = struct.Struct(f"<{DIGEST_SIZE}sQ8x")
#: Seconds for which the agent still reads a file after its replacement.
_LINGER: Final = 5.0
#: Workers and agent may run as different users of one group.
_MODE: Final = 0o660

Record = tuple[bytes, int]


class WriteJournal:
    """The worker's end of the journal; its first record opens the file, hence after the fork."""

    def __init__(self, folder: Path, marks: WriteMarks) -> None:
        self._path = folder / _NAME
        self._marks = marks
        self._descriptor = -1
        self._file = 0

    def append(self, key: bytes, found: int) -> None:
        """Append a record for the other nodes; if that fails, report a loss, of which they learn."""
        record = _RECORD.pack(key, found)
        try:
            for _ in range(3):
                if self._descriptor < 0:
                    self._open()
                if os.write(self._descriptor, record) != len(record):
                    break  # the disk filled up within the record; the reader finds the part that was written
                if self._in_place():
                    return
                self.close()
        except OSError:
            self.close()
        self._marks.report_loss()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        found = os.fstat(self._descriptor)
        self._file = found.st_ino
        if found.st_uid == os.geteuid() and found.st_mode & 0o777 != _MODE:  # restore the bits that the umask removed
            os.fchmod(self._descriptor, _MODE)

    def _in_place(self) -> bool:
        """Whether the agent reads the file that this worker writes."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return False
        if status.st_ino != self._file:
            return False
        if status.st_size > LIMIT:  # no agent reads
            os.ftruncate(self._descriptor, 0)
            self._marks.report_loss()
        return True


class WriteJournalReader:
    """The agent's end."""

    def __init__(self, folder: Path, marks: WriteMarks) -> None:
        self._path = folder / _NAME
        self._marks = marks
        self._files: list[_File] = []

    def read(self) -> list[Record]:
        """The records appended since the last call, oldest first.

        :raises OSError: when the file cannot be read
        """
        if not self._files:
            with contextlib.suppress(FileNotFoundError):
                self._files.append(_File(self._path))
        records: list[Record] = []
        for file in list(self._files):
            records += file.read(self._marks)
            if file.over_at and file.over_at < time.monotonic():
                file.close()
                self._files.remove(file)
        if self._files and self._files[-1].offset > TURN:
            self._turn()
        return records

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _turn(self) -> None:
        fresh = self._path.with_name(f".{_NAME}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
        try:
            os.fchmod(descriptor, _MODE)
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, -1, os.stat(self._path).st_gid)
        finally:
            os.close(descriptor)
        fresh.replace(self._path)
        self._files[-1].over_at = time.monotonic() + _LINGER
        self._files.append(_File(self._path))


class _File:
    """One generation of the journal, open for reading."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.offset = 0
        self.over_at = 0.0

    def read(self, marks: WriteMarks) -> Iterator[Record]:
        size = os.fstat(self._descriptor).st_size
        if size < self.offset:  # a worker discarded records that no agent had read
            self.offset = 0
            marks.report_loss()
        odd = (size - self.offset) % _RECORD.size
        if odd:  # a partial record, left by a full disk: records behind it cannot be trusted
            self.offset = size
            marks.report_loss()
            return iter(())
        raw = os.pread(self._descriptor, size - self.offset, self.offset) if size > self.offset else b""
        self.offset += len(raw)
        return _RECORD.iter_unpack(raw)

    def close(self) -> None:
        os.close(self._descriptor)
