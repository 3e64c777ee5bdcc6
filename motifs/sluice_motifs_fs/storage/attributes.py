"""Extended attributes: the one of a file with motifs, and those by which a mount shows and sets motifs.

The first, of the source file, is not shown by a mount.  Only it says whether the bytes of a file count.  The file
system writes it atomically, so a process that is killed leaves a file expanded or contracted, whatever it has
written into the file meanwhile.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Final, Self

from sluice_core.errors import DecodeError
from sluice_motifs.storage.records import ItemView, Plain, Record

#: The attribute of the source file.
STORED: Final = "user.sluice.motif.stored"
ALGORITHM: Final = "sha256"
_FORMAT: Final = 1

#: The motifs of a file as JSON; set it to one motif to attach it, remove it to detach all.
MOTIF: Final = "user.sluice.motif"
#: Whether a file is contracted or expanded; set it to change that.
STATE: Final = "user.sluice.motif.state"
#: Why the last change of a file's motifs was refused.
REASON: Final = "user.sluice.motif.reason"
#: The state of a mount's space as JSON, on its top; set it to change its target size and policy.
SPACE: Final = "user.sluice.space"

CONTRACTED: Final = "contracted"
EXPANDED: Final = "expanded"


@dataclass(frozen=True, slots=True)
class StoredState:
    """A file with motifs.

    :param version: of its content
    :param size: plain bytes, whether it has them or not
    :param digest: SHA-256 of the plain bytes in hexadecimal
    :param modified: its time of modification in nanoseconds; if that differs, other bytes were written
    :param record: the text of a ``Record``
    """

    version: str
    size: int
    digest: str
    modified: int
    contracted: bool
    record: str

    def encode(self) -> bytes:
        """The attribute's value."""
        fields = (_FORMAT, self.version, self.size, self.digest, self.modified, self.contracted, self.record)
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """
        :raises DecodeError: for a value that this version does not know
        """
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise DecodeError("the attribute of a file with motifs is damaged", raw) from error
        match fields:
            case [int(form), str(version), int(size), str(digest), int(modified), bool(contracted), str(record)] if (
                form == _FORMAT
            ):
                return cls(version, size, digest, modified, contracted, record)
        raise DecodeError("the attribute of a file with motifs is of another version, or damaged", raw)

    def describes(self, status: os.stat_result) -> bool:
        """Whether the file is unchanged since the attribute was written, so no process wrote it outside the mount."""
        return self.contracted or (self.size, self.modified) == (status.st_size, status.st_mtime_ns)

    def view(self, name: str, pinned: str, opaque: object) -> ItemView:
        """The item."""
        plain = Plain(self.version, self.size, self.digest, ALGORITHM)
        return ItemView(name, plain, Record.decode(self.record), self.contracted, pinned, opaque)


def read_stored(file: int | str) -> bytes | None:
    """The attribute of a file, given by its path or descriptor; None without one."""
    try:
        return os.getxattr(file, STORED)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        raise


def remove_stored(file: int | str) -> None:
    """Remove the attribute of a file, if it has one."""
    try:
        os.removexattr(file, STORED)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


def file_version(status: os.stat_result) -> str:
    """The version of a file without motifs; begins with the time of its last change in nanoseconds."""
    return f"{status.st_ctime_ns}.{status.st_mtime_ns:x}.{status.st_size:x}.{status.st_ino:x}"


def write_all(file: int, content: bytes, position: int) -> int:
    """Write at a position; return the number of bytes."""
    written = 0
    while written < len(content):
        written += os.pwrite(file, memoryview(content)[written:], position + written)
    return written


def copy_attributes(file: int, new: int) -> None:
    """Copy owner, modes and extended attributes, access lists included, of a file to the one that replaces it."""
    status = os.fstat(file)
    os.fchown(new, status.st_uid, status.st_gid)
    os.fchmod(new, status.st_mode & 0o7777)
    for name in os.listxattr(file):
        os.setxattr(new, name, os.getxattr(file, name))
