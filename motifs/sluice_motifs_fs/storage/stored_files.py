"""Files with motifs in a folder: how they are found, viewed and changed.

All changes of attributes, and of bytes by the runtime, hold one lock, under which the runtime's view is
compared with the present state.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sluice_core.errors import CallerError, Conflict, DecodeError, PeerError
from sluice_motifs.storage.records import ItemView, Plain, Record
from sluice_motifs_fs.storage.attributes import ALGORITHM, STORED, StoredState, file_version, read_stored, remove_stored
from sluice_motifs_fs.storage.paths import PRIVATE, SourceFolder
from sluice_motifs_fs.storage.tracking import FileTracker

log = logging.getLogger(__name__)

#: The most seconds for which a name is held.
HELD: Final = 2.0

#: The runtime's view: the inode and the attribute, or its version for a file without motifs.
_Judgement = tuple[int, bytes | str]


class PlainValues(dict[int, int]):
    """Attributes of files for clients, by inode, that replace those of the source folder.

    A reader that reads the folder first and these values after that has one consistent state if ``removals`` is
    unchanged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.removals = 0

    def remove(self, inode: int) -> None:
        """Use the value of the source folder from now on."""
        self.removals += 1
        self.pop(inode, None)


class StoredFiles:
    """The files of one folder.

    ``sizes`` has the plain size of each contracted file by its inode, ``times`` the time of modification in nanoseconds
    of those that are being expanded.
    """

    def __init__(self, folder: SourceFolder, tracker: FileTracker) -> None:
        self.sizes = PlainValues()
        self.times = PlainValues()
        #: files and folders whose motifs could not be read
        self.unread = 0
        self.mutex = threading.RLock()
        self._released = threading.Condition(self.mutex)
        self._held: Counter[str] = Counter()
        self.private = f"{folder.path}/{PRIVATE}"
        self._folder = folder
        self._tracker = tracker

    def find(self, name: str, reader: int | None = None) -> ItemView | None:
        """As :meth:`view`, without regard to pins.

        :param reader: the user who must have the right to read it
        """
        with storage_errors(name), self.mutex, contextlib.suppress(FileNotFoundError, CallerError):
            if self._folder.stat(name, reader) is None:
                return None
            file = self._folder.open(name)
            try:
                return self.view(name, file)
            finally:
                os.close(file)
        return None

    def view(self, name: str, file: int) -> ItemView:
        status = os.fstat(file)
        raw = read_stored(file)
        tracked = self._tracker.find(status.st_ino)
        stored = None if raw is None else StoredState.decode(raw)
        if stored is not None and stored.describes(status):
            pinned = "it is open" if tracked is not None and tracked.used else ""
            return stored.view(name, pinned, (status.st_ino, raw))
        version = file_version(status) if tracked is None else tracked.version(status)
        return ItemView(name, Plain(version, status.st_size, "", ALGORITHM), opaque=(status.st_ino, version))

    def scan(self) -> Iterator[ItemView]:
        for name in self._names():
            try:
                view = self.find(name)
            except DecodeError as error:
                log.warning("`%s`: %s", name, error)
                self.unread += 1
                continue
            if view is not None and view.record.motifs:
                yield view

    def _names(self) -> Iterator[str]:
        """The files that have the attribute."""
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(f"{self._folder.path}/{folder}") as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False) and entry.name != PRIVATE:
                            folders.append(f"{folder}{entry.name}/")
                        elif entry.is_file(follow_symlinks=False) and read_stored(entry.path) is not None:
                            yield folder + entry.name
            except OSError as error:
                log.warning("`%s` is not searched for motifs: %s", folder or ".", error.strerror)
                self.unread += 1

    @contextlib.contextmanager
    def changing(self, file: int) -> Iterator[None]:
        """Context in which a client changes the bytes of an open file, which has no motifs from now on."""
        with self._tracker.file(os.fstat(file).st_ino).changed, self.mutex:
            status, raw = os.fstat(file), read_stored(file)
            stored = None if raw is None else StoredState.decode(raw)
            before = stored.version if stored is not None and stored.describes(status) else None
            with self._tracker.file(status.st_ino).writing(file, before):
                remove_stored(file)
                self.sizes.remove(status.st_ino)
                yield

    def hold_name(self, name: str, file: int) -> bool:
        """Keep the runtime from replacing an open file until :meth:`release_name`.

        Return False when another file has replaced it already.
        """
        with self.mutex:
            found = self._folder.stat(name)
            if found is None or found.st_ino != os.fstat(file).st_ino:
                return False
            self._held[name] += 1
            return True

    def release_name(self, name: str) -> None:
        """Release the hold after the opener has returned."""
        with self.mutex:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
            self._released.notify_all()

    def wait_for_name(self, name: str) -> None:
        """Wait until a name is not held, :data:`HELD` seconds at most; hold ``mutex``, which is released meanwhile."""
        self._released.wait_for(lambda: name not in self._held, HELD)

    def written(self, name: str) -> bool:
        """Whether a client is writing a file, whose content is not settled."""
        found = self._folder.stat(name)
        tracked = None if found is None else self._tracker.find(found.st_ino)
        return tracked is not None and tracked.written

    def set_times(self, file: int, accessed: int, modified: int) -> None:
        """Set the times of an open file in nanoseconds, which does not change its content."""
        with self.mutex:
            status, raw = os.fstat(file), read_stored(file)
            os.utime(file, ns=(accessed, modified))
            if status.st_ino in self.times:
                self.times[status.st_ino] = modified
            stored = None if raw is None else StoredState.decode(raw)
            if stored is not None and stored.describes(status):
                os.setxattr(file, STORED, replace(stored, modified=modified).encode())

    def recover(self) -> Iterator[ItemView]:
        """Return all items; remove the leftovers of a killed process.

        These are private files, and bytes of contracted items.

        :raises Conflict: when another process uses the folder
        :raises PeerError: when the file system has no extended attributes, or cannot be written
        """
        with storage_errors(PRIVATE):
            os.makedirs(self.private, mode=0o700, exist_ok=True)
            self._lock = os.open(self.private, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict("the folder is mounted already, by another process") from error
            os.setxattr(self.private, STORED, b"")
            for left in os.scandir(self.private):
                if left.is_file(follow_symlinks=False):
                    os.unlink(left.path)
        for seen in self.scan():
            if seen.contracted:
                self.sizes[seen.opaque[0]] = seen.plain.size
                with self.unchanged(seen) as file:
                    if file is not None and os.fstat(file).st_size:
                        self.empty(file, StoredState.decode(seen.opaque[1]).modified)
            yield seen

    @contextlib.contextmanager
    def unchanged(self, seen: ItemView, closing: bool = True) -> Iterator[int | None]:
        """Context with a descriptor of the viewed file, which does not change meanwhile; None when it has changed."""
        with storage_errors(seen.name), self.mutex:
            try:
                file = self._folder.open(seen.name, os.O_RDWR)
            except FileNotFoundError:
                yield None
                return
            try:
                same = self.is_same(seen, file)
                yield file if same else None
                closing = closing or not same
            except BaseException:
                closing = True
                raise
            finally:
                if closing:
                    os.close(file)

    def is_same(self, seen: ItemView, file: int) -> bool:
        expected: _Judgement = seen.opaque
        found: _Judgement = self.view(seen.name, file).opaque
        return found == expected

    def contracted(self, file: int) -> bool:
        """Whether an open file has no bytes."""
        with self.mutex:
            raw = read_stored(file)
        return raw is not None and StoredState.decode(raw).contracted

    def store(self, file: int, plain: Plain, record: Record, contracted: bool) -> None:
        """Write the attribute; hold ``mutex``."""
        status = os.fstat(file)
        state = StoredState(plain.version, plain.size, plain.digest, status.st_mtime_ns, contracted, record.encode())
        os.setxattr(file, STORED, state.encode())
        if contracted:
            self.sizes[status.st_ino] = plain.size
        else:
            self.sizes.remove(status.st_ino)

    def empty(self, file: int, modified: int) -> None:
        os.ftruncate(file, 0)
        os.utime(file, ns=(os.fstat(file).st_atime_ns, modified))


@contextlib.contextmanager
def storage_errors(name: str) -> Iterator[None]:
    """Context that turns errors of the file system into those of a storage, except that a file does not exist."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PeerError(f"`{name}` cannot be read or written: {error.strerror}") from error
