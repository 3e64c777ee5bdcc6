"""Inspects stored files one by one, and makes transformed files plain, beside a running server.

Theory of operation.  The plain file is written under the device's own ``tmp``, checked against size and ETag,
given the same metadata (without Sluice's entry) and times, and made durable.  Then the two names are exchanged in one
step that fails when the object was removed meanwhile: a PUT, DELETE or commit in between is never undone.  If another
file was stored under the same name meanwhile, the exchange is reversed.  File names, and so the hashes that
replication compares, do not change; a process that has the old file open continues to read it.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from sluice_core.errors import SluiceError
from sluice_filters.api import Hint
from sluice_middleware.object_server.diskfile.decoded_file import DecodedFile
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters, Unreadable
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY, StoredMetadata
from sluice_middleware.swift.diskfile_api import DiskFileError, read_metadata, write_metadata
from sluice_middleware.wsgi import sysmeta as metadata

#: The state of a file, or the result of its rewrite.
PLAIN: Final = "plain"
TRANSFORMED: Final = "transformed"
UNREADABLE: Final = "unreadable"
DAMAGED: Final = "damaged"
GONE: Final = "gone"
REWRITTEN: Final = "rewritten"

_PIECE: Final = 1 << 20
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class FileReport:
    """One ``.data`` file; ``reason`` says why it is unreadable or damaged."""

    path: Path
    state: str
    reason: str = ""
    stored: StoredMetadata | None = None
    metadata: Mapping[str, Any] | None = None


def data_files(device: Path) -> Iterator[Path]:
    """Every data file of all policies on a device, in the same order each time."""
    for objects in sorted(device.glob("objects*")):
        for partition in _folders(objects):
            for suffix in _folders(partition):
                for hash_dir in _folders(suffix):
                    yield from (one for one in _listed(hash_dir) if one.suffix == ".data")


def inspect(path: Path, tools: DiskFilters) -> FileReport:
    """Return the state of a file without reading its content."""
    try:
        with open(path, "rb") as file:
            return _inspect(path, file, tools)
    except FileNotFoundError:
        return FileReport(path, GONE)


def rewrite(path: Path, tools: DiskFilters, pace: Callable[[int], None] = lambda size: None) -> FileReport:
    """Make a file plain if it is not; return its state afterwards.

    :param pace: called with the number of bytes written, and may sleep
    :raises OSError: when the device cannot be written
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 -- DecodedFile owns it
    except FileNotFoundError:
        return FileReport(path, GONE)
    with file:
        report = _inspect(path, file, tools)
        if report.state != TRANSFORMED:
            return report
        return _replace(report, file, tools, pace)


def _inspect(path: Path, file: BinaryIO, tools: DiskFilters) -> FileReport:
    try:
        known = read_metadata(file)
        if ENTRY not in known:
            return FileReport(path, PLAIN, metadata=known)
        stored = StoredMetadata.decode(known[ENTRY])
        size = os.fstat(file.fileno()).st_size
        plain = stored.plain_size()
        if size != stored.size or (plain is not None and plain != int(known["Content-Length"])):
            return FileReport(path, DAMAGED, f"`{size}` bytes of {plain}, expected {stored.size}", stored, known)
    except (DiskFileError, SluiceError, EOFError, KeyError, ValueError) as error:
        return FileReport(path, DAMAGED, str(error) or repr(error))
    fault = tools.unreadable_reason(stored)
    return FileReport(path, UNREADABLE if fault else TRANSFORMED, fault, stored, known)


def _replace(report: FileReport, file: BinaryIO, tools: DiskFilters, pace: Callable[[int], None]) -> FileReport:
    before = os.fstat(file.fileno())
    descriptor, fresh = tempfile.mkstemp(prefix="sluice-unwind-", dir=_temporary(report.path))
    try:
        try:
            _copy(report, file, descriptor, tools, pace)
        except (SluiceError, Unreadable) as error:
            return FileReport(report.path, UNREADABLE, str(error), report.stored, report.metadata)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return FileReport(report.path, DAMAGED, str(error), report.stored, report.metadata)
        os.fchmod(descriptor, before.st_mode & 0o7777)
        os.fchown(descriptor, before.st_uid, before.st_gid)
        os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fsync(descriptor)
        done = _swap(fresh, report.path, before.st_ino)
        return FileReport(report.path, REWRITTEN if done else GONE, "", report.stored, report.metadata)
    finally:
        os.close(descriptor)
        os.unlink(fresh)


def _copy(report: FileReport, file: BinaryIO, target: int, tools: DiskFilters, pace: Callable[[int], None]) -> None:
    """
    :raises OSError: EIO when the plain bytes do not match the metadata
    """
    assert report.stored is not None
    assert report.metadata is not None
    known = report.metadata
    size = int(known["Content-Length"])
    account = str(known.get("name", "")).lstrip("/").partition("/")[0]
    plain = DecodedFile(file, report.stored, size, tools, Hint(account=account), threads=False)
    etag = hashlib.md5(usedforsecurity=False)
    while piece := plain.read(_PIECE):
        etag.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]
        pace(len(piece))
    if etag.hexdigest() != known.get("ETag"):
        raise OSError(errno.EIO, f"MD5 of the plain bytes is {etag.hexdigest()}, expected {known.get('ETag')}")
    write_metadata(target, {name: value for name, value in known.items() if name not in (ENTRY, metadata.NODE)})


def _swap(fresh: str, path: Path, inode: int) -> bool:
    """Rename ``fresh`` over the file with ``inode``; return False when that file was replaced or removed."""
    try:
        _exchange(fresh, path)
        if os.stat(fresh).st_ino != inode:
            _exchange(fresh, path)
            return False
    except FileNotFoundError:
        return False
    folder = os.open(path.parent, os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def _exchange(name: str, other: Path) -> None:
    """Exchange two names in one step.

    :raises OSError: FileNotFoundError when there is no ``other``
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.renameat2(_AT_FDCWD, os.fsencode(name), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def _temporary(path: Path) -> Path:
    """The device's folder for temporary files."""
    objects = path.parents[3]
    folder = objects.parent / objects.name.replace("objects", "tmp", 1)
    folder.mkdir(exist_ok=True)
    return folder


def _folders(path: Path) -> list[Path]:
    return [one for one in _listed(path) if one.is_dir()]


def _listed(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []  # removed meanwhile
