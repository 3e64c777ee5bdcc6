"""The data files of a node's cache: one per object, whole or not at all.

    head (64 bytes) | headers (MessagePack, with room to grow) | body

The head names the filling (*serial*), which must be the one that the index names, and the index names it
only when the file is whole; so files are written in their final place (creating a file costs most).  A reader of
an older filling keeps it, since a new filling is a new file.  Files are not synced, since the disks of the cluster
hold every object: a body is compared with its checksum before it is used.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgpack
from isal import isal_zlib

_HEAD: Final = struct.Struct("<8s16sQQIIII")
_HEAD_SIZE: Final = 64
_MAGIC: Final = b"sluiOBJ1"
_ROOM_STEP: Final = 512
_ROOM_SPARE: Final = 768
_FIRST_READ: Final = 4096
#: Bytes of one read.
PIECE: Final = 1 << 20


class CachedFile(NamedTuple):
    """An open file: the reader closes ``descriptor``."""

    descriptor: int
    headers: dict[str, str]
    start: int
    length: int
    checksum: int
    meta: bytes

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """The bytes ``[first, last)`` of the body.

        :raises OSError: when the file ends early
        """
        while first < last:
            piece = os.pread(self.descriptor, min(PIECE, last - first), self.start + first)
            if not piece:
                raise OSError("a cached object ends early")
            first += len(piece)
            yield piece

    def is_intact(self) -> bool:
        """Whether the body has the checksum of its head."""
        checksum = 0
        try:
            for piece in self.read(0, self.length):
                checksum = isal_zlib.crc32(piece, checksum)
        except OSError:
            return False
        return checksum == self.checksum

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


class DataFiles:
    """The folder of data files."""

    def __init__(self, folder: Path) -> None:
        self._text = str(folder)
        #: The lock file that a process holds during a sweep.
        self.lock = f"{folder}.sweeping"

    def path(self, key: bytes) -> str:
        """The path of the object's file."""
        name = key.hex()
        return f"{self._text}/{name[:2]}/{name}"

    def write(self, key: bytes, serial: int, headers: Mapping[str, str], body: Sequence[bytes]) -> int:
        """Store an object; return the size of its file.

        :raises OSError: when it cannot be written; its file is removed
        """
        meta = pack_headers(headers)
        room = -(-(_HEAD_SIZE + len(meta) + _ROOM_SPARE) // _ROOM_STEP) * _ROOM_STEP - _HEAD_SIZE
        whole = body[0] if len(body) == 1 else b"".join(body)
        checksum = isal_zlib.crc32(whole)
        head = _head(key, serial, len(whole), room, meta, checksum)
        path = self.path(key)
        descriptor = _create(path)
        try:
            with open(descriptor, "wb") as file:
                file.write(head + meta + bytes(room - len(meta)))
                file.write(whole)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        return _HEAD_SIZE + room + len(whole)

    def open(self, key: bytes, serial: int) -> CachedFile | None:
        """Open the object's file; return None when it has another filling or is not whole."""
        try:
            descriptor = os.open(self.path(key), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        content = None
        try:
            content = _read_head(descriptor, key, serial)
        except (OSError, ValueError, struct.error, msgpack.UnpackException):
            content = None  # written in part, or by another version
        finally:
            if content is None:
                os.close(descriptor)
        return content

    def rewrite_headers(self, key: bytes, serial: int, content: CachedFile, headers: Mapping[str, str]) -> bool:
        """Replace the headers in place; return False when they do not fit.

        :raises OSError: when they cannot be written
        """
        meta = pack_headers(headers)
        room = content.start - _HEAD_SIZE
        if len(meta) > room:
            return False
        head = _head(key, serial, content.length, room, meta, content.checksum)
        descriptor = os.open(self.path(key), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, head + meta, 0)
        finally:
            os.close(descriptor)
        return True

    def remove(self, key: bytes) -> None:
        """Remove the object's file."""
        with contextlib.suppress(OSError):
            os.unlink(self.path(key))

    def walk(self) -> Iterator[tuple[str, bytes]]:
        """Path and key of every file."""
        for folder in _listed(self._text):
            for path in _listed(folder):
                with contextlib.suppress(ValueError):
                    yield path, bytes.fromhex(os.path.basename(path))


def pack_headers(headers: Mapping[str, str]) -> bytes:
    """Bytes for the file; the order is kept."""
    packed: bytes = msgpack.packb(list(headers.items()))
    return packed


def _head(key: bytes, serial: int, length: int, room: int, meta: bytes, checksum: int) -> bytes:
    head = _HEAD.pack(_MAGIC, key, serial, length, room, len(meta), checksum, isal_zlib.crc32(meta))
    return head.ljust(_HEAD_SIZE, b"\0")


def _read_head(descriptor: int, key: bytes, serial: int) -> CachedFile | None:
    raw = os.read(descriptor, _FIRST_READ)
    magic, whose, filling, length, room, size, checksum, meta_checksum = _HEAD.unpack_from(raw)
    if (magic, whose, filling) != (_MAGIC, key, serial):
        return None
    end = _HEAD_SIZE + size
    meta = raw[_HEAD_SIZE:end] if end <= len(raw) else os.pread(descriptor, size, _HEAD_SIZE)
    if isal_zlib.crc32(meta) != meta_checksum:
        return None
    return CachedFile(descriptor, dict(msgpack.unpackb(meta)), _HEAD_SIZE + room, length, checksum, meta)


def _create(path: str) -> int:
    """Create a file at ``path``, in place of any other."""
    for _ in range(10):
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except FileExistsError:  # an older filling, or that of another worker
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    raise OSError(f"cannot make `{path}`")


def _listed(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return [one.path for one in found]
    except OSError:
        return []
