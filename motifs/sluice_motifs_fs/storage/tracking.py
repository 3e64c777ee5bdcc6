"""Who writes the files that items are made from, and who needs their content as it was.

* While a client writes a file, its *shown version* is the one from before: what was made from it is not out of date.
  It is *settled*, and has a new version, when the client closes it, or has not written for a moment.
* An expansion *pins* its sources: it waits until they are settled, notes their versions and holds them open.  A client
  that is going to change such a file copies it first, for the expansions that hold it.  So an expansion reads one
  content, that of the version that it noted, and no client waits for an expansion.
* A client who never closes a file and never pauses does not hold up expansions for long: after ``PATIENCE`` the content
  of that moment gets a version, and is what they read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from sluice_motifs_fs.storage.attributes import file_version

#: Seconds without a write after which a file counts as settled although it is open for writing.
QUIET: Final = 2.0
#: Seconds for which an expansion waits for a source to settle.
PATIENCE: Final = 5.0


class Holder(Protocol):
    """Who needs the content of a file as it is."""

    def copy(self) -> None:
        """Hold a copy from now on: the file is going to be changed."""


class TrackedFile:
    """One file, by its inode; ``changed`` is held while its content or its version changes."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        #: handles that are open for writing, and those that keep its bytes in their place
        self.writers = 0
        self.readers = 0
        self.pins: list[Holder] = []
        self.written = False
        self._wrote: set[int] = set()
        self._shown = ""
        self._last_write = 0.0

    @property
    def used(self) -> bool:
        """Whether anybody has it open, or needs it as it is."""
        return bool(self.writers or self.readers or self.pins)

    def version(self, found: os.stat_result) -> str:
        """The version that it shows."""
        return self._shown if self.written else file_version(found)

    @contextmanager
    def writing(self, file: int, before: str | None = None) -> Iterator[None]:
        """While it is entered, a client changes the content.

        :param file: the handle by which it does, an open descriptor
        :param before: its version, where that is not the one of its times
        """
        with self.changed:
            if not self.written:
                for pin in self.pins:
                    pin.copy()
                self._shown = before or file_version(os.fstat(file))
                self.written = True
            self._wrote.add(file)
            try:
                yield
            finally:
                self._last_write = time.monotonic()

    def hold(self, writes: bool) -> None:
        """One handle more."""
        with self.changed:
            self.readers += 1
            self.writers += writes

    def release(self, file: int, writes: bool) -> None:
        """One handle less, a descriptor that is still open; the content is settled when no other one has written it."""
        with self.changed:
            self.readers -= 1
            self.writers -= writes
            self._wrote.discard(file)
            if not self._wrote:
                self.settle(file)

    def settle(self, file: int) -> None:
        """What was written is the content now, and has a version that it did not have before."""
        with self.changed:
            if not self.written:
                return
            self.written = False
            self._wrote.clear()
            found = os.fstat(file)
            while file_version(found) == self._shown:  # written within one tick of the file system's clock
                os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
                found = os.fstat(file)
            self.changed.notify_all()

    def wait(self, file: int) -> None:
        """Until it is settled, which it is after ``PATIENCE`` at the latest; hold ``changed``."""
        end = time.monotonic() + PATIENCE
        while self.written:
            now = time.monotonic()
            due = min(end, self._last_write + QUIET)
            if now >= due:
                self.settle(file)
            else:
                self.changed.wait(due - now)


class FileTracker:
    """The files that are tracked, from any threads; those that nobody uses are nothing but their lock."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._files: dict[int, TrackedFile] = {}

    def file(self, inode: int) -> TrackedFile:
        """A file, which is tracked from now on."""
        with self._mutex:
            return self._files.setdefault(inode, TrackedFile())

    def find(self, inode: int) -> TrackedFile | None:
        """A file, if it is tracked."""
        return self._files.get(inode)
