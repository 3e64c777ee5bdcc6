"""The sources of an expansion, held as they were when it began; theory of operation in ``tracking``.

What is pinned is seen by the thread of the expansion alone, and by the expansions of contracted sources that it begins.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sluice_core.errors import CallerError
from sluice_motifs.storage.records import ItemView
from sluice_motifs_fs.storage.paths import PRIVATE, SourceFolder
from sluice_motifs_fs.storage.tracking import FileTracker

#: Bytes that are copied, and read, at once.
_COPIED: Final = 16 << 20
_PIECE: Final = 256 << 10


class Pin:
    """The content of a file for an expansion.

    :param file: a descriptor of it, which is closed with the pin
    :param folder: where a copy is made, without a name
    """

    def __init__(self, file: int, view: ItemView, folder: str) -> None:
        self.view = view
        self._file = file
        self._folder = folder
        self._copied = False
        self._mutex = threading.Lock()

    def copy(self) -> None:
        """Hold a copy from now on: the file is going to be changed."""
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
        """Read no more."""
        os.close(self._file)


class Pins:
    """The sources of one expansion; shared by its opener and its maker, the last of whom gives them back.

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
        """One user more."""
        with self._mutex:
            self._users += 1
        return self

    def release(self) -> None:
        """One user less."""
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

    :param look: the item of a name, as it is now
    """

    def __init__(self, folder: SourceFolder, tracker: FileTracker, look: Callable[[str], ItemView | None]) -> None:
        self._folder = folder
        self._tracker = tracker
        self._look = look
        self._thread = threading.local()

    def find(self, name: str) -> Pin | None:
        """A file that the expansion of this thread has pinned."""
        pins = self._current
        return None if pins is None else pins.found.get(name)

    @property
    def _current(self) -> Pins | None:
        pins: Pins | None = getattr(self._thread, "pins", None)
        return pins

    @contextlib.contextmanager
    def reading(self, pins: Pins) -> Iterator[None]:
        """While it is entered, this thread sees pinned files as they were."""
        before, self._thread.pins = self._current, pins
        try:
            yield
        finally:
            self._thread.pins = before

    def spawn(self, work: Callable[[], None]) -> None:
        """Run an expansion in a thread that sees what this one sees."""
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
        """Hold the content of files as it is once it is settled; what this thread has pinned stays as it was.

        Files that are contracted or do not exist are left out.
        """
        outer = self._current
        held = {} if outer is None else outer.found
        found: dict[str, Pin] = {}
        try:
            for name in sorted(names - held.keys()):
                pin = self._pin(name)
                if pin is not None:
                    found[name] = pin
        except BaseException:
            for pin in found.values():
                self._unpin(pin)
            raise
        return Pins(found, self._unpin, None if outer is None else outer.share())

    def _pin(self, name: str) -> Pin | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, CallerError):
            while True:
                file = self._folder.open(name)
                inode = os.fstat(file).st_ino
                tracked = self._tracker.file(inode)
                with tracked.changed:
                    tracked.wait(file)
                    view = self._look(name)
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
