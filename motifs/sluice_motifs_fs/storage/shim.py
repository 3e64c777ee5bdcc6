"""The shim between the motif runtime and a folder of a file system.

An item is a regular file; its name is its path from the top of the folder.  A *contracted* one has no bytes, and an
attribute that describes them.

* Contraction and expansion keep the file with its inode: owner, modes, access lists and hard links stay,
  and the kernel's cache of its content is valid.  The attribute changes first on contraction, and last on
  expansion.  ``StoredFiles.recover`` removes the leftovers of a killed process.
* New content is written to a private file, which then replaces the old one: a process that has that open reads on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import Shim
from sluice_motifs_fs.storage.attributes import ALGORITHM, copy_attributes, remove_stored, write_all
from sluice_motifs_fs.storage.copies import FileCopies, is_copy
from sluice_motifs_fs.storage.paths import SourceFolder
from sluice_motifs_fs.storage.stored_files import StoredFiles, storage_errors
from sluice_motifs_fs.storage.tracking import FileTracker, Pinning

#: Bytes that are read at once.
PIECE: Final = 256 << 10


class FileShim(Shim):
    """Items of one folder; implements ``Shim``.

    :param front_door: returns the bytes of an item for an expansion, by its name and the chain of items that wait for
        it
    :param replaced: called with an item that another file replaced, and a descriptor of the old one
    """

    def __init__(
        self,
        files: StoredFiles,
        folder: SourceFolder,
        tracker: FileTracker,
        front_door: Callable[[str, tuple[str, ...]], Iterator[bytes]],
        replaced: Callable[[str, int], None] = lambda name, file: None,
    ) -> None:
        self._files = files
        self._folder = folder
        self._tracker = tracker
        self._front_door = front_door
        self._replaced = replaced
        self._making: set[int] = set()
        self._copies = FileCopies(files.private)
        self.pinning = Pinning(folder, tracker, self._files.find)

    # Shim

    @property
    def copies(self) -> FileCopies:
        return self._copies

    def view(self, name: str) -> ItemView | None:
        if is_copy(name):
            return self._copies.view(name)
        pin = self.pinning.find(name)
        return self._files.find(name) if pin is None else pin.view

    def scan(self) -> Iterator[ItemView]:
        return self._files.scan()

    def may_share(self, motif: Motif, other: str) -> bool:
        """Whether the user who attached a motif owns another file, or the mount."""
        found = self._folder.stat(other)
        return found is not None and int(motif.identity or 0) in (0, os.geteuid(), found.st_uid)

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        pin = self.pinning.find(name)
        if self._files.find(name, int(reader) if reader else None) is None and pin is None:
            raise SourceGone(name)
        yield from self._front_door(name, chain) if pin is None else pin.read()

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        with storage_errors(seen.name):
            try:
                file = self._folder.open(seen.name)
            except FileNotFoundError as error:
                raise _another(seen.name) from error
            try:
                position = 0
                while True:
                    piece = os.pread(file, PIECE, position)
                    if self._files.view(seen.name, file).opaque != seen.opaque or seen.contracted:
                        raise _another(seen.name)
                    if not piece:
                        return
                    position += len(piece)
                    yield piece
            finally:
                os.close(file)

    def annotate(self, seen: ItemView, record: Record) -> bool:
        plain = seen.plain
        if record.motifs and not plain.digest:
            digest = hashlib.new(ALGORITHM)
            try:
                for piece in self.own_bytes(seen):
                    digest.update(piece)
            except ExpansionError:
                return False
            plain = replace(plain, digest=digest.hexdigest())
        with self._files.unchanged(seen) as file:
            if file is None:
                return False
            tracked = self._tracker.find(os.fstat(file).st_ino)
            if record.motifs and tracked is not None and tracked.written:
                return False  # its content is about to be replaced
            if record.motifs:
                self._files.store(file, plain, record, seen.contracted)
            elif not seen.contracted:
                remove_stored(file)
            return True

    def contract(self, seen: ItemView, record: Record) -> bool:
        with self._files.unchanged(seen) as file:
            if file is None:
                return False
            status = os.fstat(file)
            tracked = self._tracker.find(status.st_ino)
            if tracked is not None and tracked.used:
                return False
            self._files.store(file, seen.plain, record, contracted=True)
            self._files.empty(file, status.st_mtime_ns)
            return True

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        inode = seen.opaque[0]
        with self._files.mutex:
            if inode in self._making:
                return False  # another expansion writes the same bytes into it
            self._making.add(inode)
        try:
            return self._fill(seen, record, pieces)
        finally:
            self._making.discard(inode)

    def _fill(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        with self._files.unchanged(seen, closing=False) as file:
            if file is None:
                return False
            status = os.fstat(file)
            self._files.times[status.st_ino] = status.st_mtime_ns
        complete = False
        try:
            position = 0
            for piece in pieces:
                with self._files.mutex:
                    if not self._files.is_same(seen, file):
                        return False
                    position += write_all(file, piece, position)
            os.fsync(file)
            with self._files.mutex:
                if self._files.is_same(seen, file):
                    os.utime(file, ns=(os.fstat(file).st_atime_ns, self._files.times[status.st_ino]))
                    self._files.store(file, seen.plain, record, contracted=False)
                    complete = True
            return complete
        finally:
            with self._files.mutex:
                if not complete and self._files.contracted(file):
                    self._files.empty(file, self._files.times[status.st_ino])
                self._files.times.remove(status.st_ino)
            os.close(file)

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        private = secrets.token_hex(8)
        new = os.open(f"{self._files.private}/{private}", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            digest, size = hashlib.new(ALGORITHM), 0
            for piece in pieces:
                digest.update(piece)
                size += write_all(new, piece, size)
            with self._files.unchanged(seen) as file:
                self._files.wait_for_name(seen.name)
                if file is None or not self._replaceable(seen, file):
                    return False
                copy_attributes(file, new)
                version = f"{time.time_ns()}.{private}"
                self._files.store(new, Plain(version, size, digest.hexdigest(), ALGORITHM), record, contracted=False)
                os.fsync(new)
                self._folder.replace(private, seen.name)
                self._replaced(seen.name, file)
            return True
        finally:
            os.close(new)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._files.private}/{private}")

    def _replaceable(self, seen: ItemView, file: int) -> bool:
        status = os.fstat(file)
        tracked = self._tracker.find(status.st_ino)
        return (
            status.st_nlink == 1 and not (tracked is not None and tracked.writers) and self._files.is_same(seen, file)
        )


def _another(name: str) -> ExpansionError:
    return ExpansionError(f"`{name}` is another one now")
