"""Hidden copies of a mount: files in its private folder, each named by the SHA-256 of its bytes.

One process uses the folder, and finds all items when it mounts it.  So it removes copies that no item names then, and
needs no references.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Collection, Iterator
from typing import Final

from sluice_core.errors import PeerError
from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.storage.records import ItemView, Plain
from sluice_motifs.storage.shim import CopyView
from sluice_motifs_fs.storage.attributes import ALGORITHM, write_all
from sluice_motifs_fs.storage.paths import PRIVATE

_FOLDER: Final = "copies"
_PREFIX: Final = f"{PRIVATE}/{_FOLDER}/"
_PIECE: Final = 256 << 10


def is_copy(name: str) -> bool:
    """Whether a name is that of a copy."""
    return name.startswith(_PREFIX)


class FileCopies:
    """Implements ``Copies``.

    :param private: the private folder of the mount
    """

    def __init__(self, private: str) -> None:
        self._folder = f"{private}/{_FOLDER}"

    def name(self, item: str, placement: str, digest: str) -> str:
        if placement:
            raise ExpansionError(f"a mount keeps copies in one place, and has no `{placement}`")
        return _PREFIX + digest

    def find(self, name: str) -> CopyView | None:
        try:
            status = os.stat(self._path(name))
        except FileNotFoundError:
            return None
        return CopyView(name, time.time() - status.st_mtime, str(status.st_mtime_ns))

    def view(self, name: str) -> ItemView | None:
        """A copy as an item without motifs."""
        copy = self.find(name)
        if copy is None:
            return None
        size = os.stat(self._path(name)).st_size
        return ItemView(name, Plain(copy.version, size, name.removeprefix(_PREFIX), ALGORITHM))

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        private = f"{self._folder}/../{secrets.token_hex(8)}"
        try:
            with open(private, "xb", buffering=0) as file:
                position = 0
                for piece in pieces:
                    position += write_all(file.fileno(), piece, position)
                os.fsync(file.fileno())
            os.rename(private, self._path(name))
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise PeerError(f"a copy of `{item.name}` cannot be written: {error.strerror}") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(private)

    def read(self, name: str) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with open(self._path(name), "rb", buffering=0) as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
                    yield piece
        except FileNotFoundError as error:
            raise SourceGone(name) from error
        if digest.hexdigest() != name.removeprefix(_PREFIX):
            raise ExpansionError(f"copy `{name}` is damaged")

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        """Do nothing: the next mount finds the items that name it."""

    def keep_only(self, needed: Collection[str]) -> None:
        """Remove all other copies."""
        if os.path.isdir(self._folder):
            for name in os.listdir(self._folder):
                if _PREFIX + name not in needed:
                    os.unlink(f"{self._folder}/{name}")

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name.removeprefix(_PREFIX)}"
