"""Files below the source folder by the names of items, without following a symbolic link out of it.

The process may run as root, and any user that may attach a motif chooses the names of its sources.  So each folder on
the way is opened without following links, and that user must have the right to read the sources.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from sluice_core.errors import CallerError
from sluice_motifs.api import ExpansionError

#: The folder of files that are being written, below the source folder; a mount does not show it.
PRIVATE: Final = ".sluice-motif"
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SourceFolder:
    """The folder that is mounted.

    :param path: of the folder; stays valid when something is mounted over it
    """

    def __init__(self, path: os.PathLike[str] | str) -> None:
        self._root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = f"/proc/self/fd/{self._root}"

    def close(self) -> None:
        """Close the folder; no name can be looked up any more."""
        os.close(self._root)

    def stat(self, name: str, reader: int | None = None) -> os.stat_result | None:
        """A file; None if it does not exist, or is no regular file.

        :param reader: the user who must have the right to read it; None for any user
        :raises ExpansionError: when that user has not
        """
        with suppress(FileNotFoundError, NotADirectoryError):
            folder, last = self._folder(name, reader)
            try:
                status = os.stat(last, dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
            if not stat.S_ISREG(status.st_mode):
                return None
            if reader is not None and not _allowed(status, reader, stat.S_IRUSR):
                raise ExpansionError(f"user {reader} may not read `{name}`")
            return status
        return None

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open an existing regular file; this does not block."""
        folder, last = self._folder(name)
        try:
            return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)

    def replace(self, private: str, name: str) -> None:
        """Move a file of the private folder over another one."""
        folder, last = self._folder(name)
        try:
            os.rename(f"{self.path}/{PRIVATE}/{private}", last, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def _folder(self, name: str, reader: int | None = None) -> tuple[int, str]:
        *folders, last = name.split("/")
        if any(one in ("", ".", "..") for one in (*folders, last)) or (*folders, last)[0] == PRIVATE or "\0" in name:
            raise CallerError(f"`{name!a}` is the name of no file, expected a path from the top of the mount")
        here = os.open(".", _FOLDER, dir_fd=self._root)
        for one in folders:
            try:
                below = os.open(one, _FOLDER, dir_fd=here)
            finally:
                os.close(here)
            here = below
            if reader is not None and not _allowed(os.fstat(here), reader, stat.S_IXUSR):
                os.close(here)
                raise ExpansionError(f"user {reader} may not read `{name}`")
        return here, last


def _allowed(status: os.stat_result, user: int, right: int) -> bool:
    """Whether a user has a right as owner, or all users have it; groups and access lists are ignored."""
    if user in (0, os.geteuid()):
        return True
    return bool(status.st_mode & (right if status.st_uid == user else right >> 6))
