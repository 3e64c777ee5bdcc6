"""The writers of files that are sources, and the expansions that need their content unchanged.

* While a client writes a file, its *shown version* is the one from before: items made from it are not stale.
  It is *settled*, and has a new version, when the client closes it, or has not written for a moment.
* An expansion *pins* its sources: it waits until they are settled, notes their versions and holds them open.  A client
  that is going to change such a file copies it first, for the expansions that hold it.  So an expansion reads one
  content, that of the noted version, and no client waits for an expansion.
* A client that never closes a file and never pauses does not delay expansions for long: after ``PATIENCE`` the content
  of that moment gets a version, and expansions read it.
* Only the thread of the expansion sees its pins, and the expansions of contracted sources that it
  begins.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from sluice_core.errors import CallerError
from sluice_motifs.storage.records import ItemView
from sluice_motifs_fs.storage.attributes import file_version
from sluice_motifs_fs.storage.paths import PRIVATE, SourceFolder

#: Seconds without a write after which a file counts as settled although it is open for writing.
QUIET: Final = 2.0
#: Seconds for which an expansion waits for a source to settle.
PATIENCE: Final = 5.0
#: Bytes that are copied, and read, at once.
_COPIED: Final = 16 << 20
_PIECE: Final = 256 << 10


class Holder(Protocol):
    """A holder of the content of a file."""

    def copy(self) -> None:
        """Hold a copy from now on: the file will be changed."""


class TrackedFile:
    """One file, by its inode; ``changed`` is held while its content or its version changes."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        #: handles that are open for writing, and those that keep the file expanded
        self.writers = 0
        self.readers = 0
        self.pins: list[Holder] = []
        self.written = False
        self._wrote: set[int] = set()
        self._shown = ""
        self._last_write = 0.0

    @property
    def used(self) -> bool:
        """Whether it is open, or its content is held."""
        return bool(self.writers or self.readers or self.pins)

    def version(self, status: os.stat_result) -> str:
        """The version that it shows."""
        return self._shown if self.written else file_version(status)

    @contextmanager
    def writing(self, file: int, before: str | None = None) -> Iterator[None]:
        """Context in which a client changes the content.

        :param file: the client's handle, an open descriptor
        :param before: its version, if that does not follow from its times
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
        """Count a handle that was opened."""
        with self.changed:
            self.readers += 1
            self.writers += writes

    def release(self, file: int, writes: bool) -> None:
        """Count a handle as closed, its descriptor still open; settle the content unless others have written it."""
        with self.changed:
            self.readers -= 1
            self.writers -= writes
            self._wrote.discard(file)
            if not self._wrote:
                self.end_write(file)

    def end_write(self, file: int) -> None:
        """Settle the content: written bytes count from now on, under a new version."""
        with self.changed:
            if not self.written:
                return
            self.written = False
            self._wrote.clear()
            status = os.fstat(file)
            while file_version(status) == self._shown:  # written within one tick of the file system's clock
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
                status = os.fstat(file)
            self.changed.notify_all()

    def wait(self, file: int) -> None:
        """Wait until the content is settled, ``PATIENCE`` seconds at most; hold ``changed``."""
        end = time.monotonic() + PATIENCE
        while self.written:
            now = time.monotonic()
            due = min(end, self._last_write + QUIET)
            if now >= due:
                self.end_write(file)
            else:
                self.changed.wait(due - now)


class FileTracker:
    """The tracked files, from any threads; unused ones keep only their lock."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._files: dict[int, TrackedFile] = {}

    def file(self, inode: int) -> TrackedFile:
        """Return a file, and track it from now on."""
        with self._mutex:
            return self._files.setdefault(inode, TrackedFile())

    def find(self, inode: int) -> TrackedFile | None:
        """Return a file, if it is tracked."""
        return self._files.get(inode)


class Pin:
    """The content of a file for an expansion.

    :param file: a descriptor of it, which is closed with the pin
    :param folder: where an unnamed copy is created
    """

    def __init__(self, file: int, view: ItemView, folder: str) -> None:
        self.view = view
        self._file = file
        self._folder = folder
        self._copied = False
        self._mutex = threading.Lock()

    def copy(self) -> None:
        """Hold a copy from now on: the file will be changed."""
        with self._mutex:
            if self._copied:
                return
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as unnamed:
                copied = 0
                while done := os.copy_file_range(self._file, unnamed.fileno(), _COPIED, copied, copied):
                    copied += done
                os.dup2(unnamed.fileno(), self._file, inheritable=False)
            self._copied = True

    def read(self) -> Iterator[bytes]:
        """The bytes."""
        position = 0
        while True:
            with self._mutex:
                piece = os.pread(self._file, _PIECE, position)
            if not piece:
                return
            position += len(piece)
            yield piece

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Pins:
    """The sources of one expansion; shared by its opener and its maker, the last of which releases them.

    :param own: those that were pinned for it
    :param outer: those of the expansion that waits for it
    """

    def __init__(self, own: Mapping[str, Pin], forget: Callable[[Pin], None], outer: Pins | None) -> None:
        self.found: Mapping[str, Pin] = own if outer is None else {**outer.found, **own}
        self._own = own
        self._forget = forget
        self._outer = outer
        self._users = 1
        self._mutex = threading.Lock()

    def share(self) -> Pins:
        """Add a user."""
        with self._mutex:
            self._users += 1
        return self

    def release(self) -> None:
        """Remove a user; the last one releases the pins."""
        with self._mutex:
            self._users -= 1
            last = self._users == 0
        if last:
            for pin in self._own.values():
                self._forget(pin)
            if self._outer is not None:
                self._outer.release()


class Pinning:
    """Pins files.

    :param view: returns the present item of a name
    """

    def __init__(self, folder: SourceFolder, tracker: FileTracker, view: Callable[[str], ItemView | None]) -> None:
        self._folder = folder
        self._tracker = tracker
        self._view = view
        self._thread = threading.local()

    def find(self, name: str) -> Pin | None:
        """Return a file that the expansion of this thread has pinned."""
        pins = self._current
        return None if pins is None else pins.found.get(name)

    @property
    def _current(self) -> Pins | None:
        pins: Pins | None = getattr(self._thread, "pins", None)
        return pins

    @contextlib.contextmanager
    def reading(self, pins: Pins) -> Iterator[None]:
        """Context in which this thread sees pinned files unchanged."""
        before, self._thread.pins = self._current, pins
        try:
            yield
        finally:
            self._thread.pins = before

    def spawn(self, work: Callable[[], None]) -> None:
        """Run an expansion in a thread with the pins of this one."""
        pins = self._current
        shared = None if pins is None else pins.share()

        def run() -> None:
            try:
                with contextlib.nullcontext() if shared is None else self.reading(shared):
                    work()
            finally:
                if shared is not None:
                    shared.release()

        threading.Thread(target=run, name="motif expansion", daemon=True).start()

    def pin(self, names: frozenset[str]) -> Pins:
        """Hold the content of files once it is settled; pins of this thread stay.

        Contracted and missing files are left out.
        """
        outer = self._current
        held = {} if outer is None else outer.found
        pinned: dict[str, Pin] = {}
        try:
            for name in sorted(names - held.keys()):
                pin = self._pin(name)
                if pin is not None:
                    pinned[name] = pin
        except BaseException:
            for pin in pinned.values():
                self._unpin(pin)
            raise
        return Pins(pinned, self._unpin, None if outer is None else outer.share())

    def _pin(self, name: str) -> Pin | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, CallerError):
            while True:
                file = self._folder.open(name)
                inode = os.fstat(file).st_ino
                tracked = self._tracker.file(inode)
                with tracked.changed:
                    tracked.wait(file)
                    view = self._view(name)
                    if view is not None and not view.contracted and view.opaque[0] == inode:
                        pin = Pin(file, view, f"{self._folder.path}/{PRIVATE}")
                        tracked.pins.append(pin)
                        return pin
                os.close(file)
                if view is None or view.contracted:
                    return None
        return None

    def _unpin(self, pin: Pin) -> None:
        tracked = self._tracker.file(pin.view.opaque[0])
        with tracked.changed:
            tracked.pins.remove(pin)
        pin.close()
