"""Names and folders of a mount that shows a folder unchanged, through pyfuse3.

The folder is the working folder of the process.  All changes come through the mount, so the kernel may cache all
replies.  Calls of the file system are made in the event loop: most are answered from memory, in less time than a
hand-over to a thread.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import pyfuse3
from pyfuse3 import EntryAttributes, FUSEError, ReaddirToken, RequestContext, StatvfsData

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, SluiceError
from sluice_motifs_fs.operations.nodes import TOP, Node, Nodes
from sluice_motifs_fs.storage.paths import PRIVATE
from sluice_motifs_fs.storage.stored_files import PlainValues

log = logging.getLogger(__name__)

#: Seconds for which the kernel caches names and attributes.
KEPT: Final = 3600.0
_ERRORS: Final[Sequence[tuple[type[SluiceError], int]]] = (
    (NotFound, errno.ENOENT),
    (Conflict, errno.EBUSY),
    (Forbidden, errno.EACCES),
    (CallerError, errno.EINVAL),
)
_STATVFS: Final = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail")


class _Reported:
    """A context manager: turns errors of the source file system, and of motifs, into those of the mount."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise FUSEError(error.errno or errno.EIO) from error
        if isinstance(error, SluiceError):
            log.warning("%s", error)
            raise FUSEError(next((number for kind, number in _ERRORS if isinstance(error, kind)), errno.EIO)) from error


REPORTED: Final = _Reported()


class FolderOperations(pyfuse3.Operations):
    """Operations on names; the methods are described by pyfuse3."""

    supports_dot_lookup = False

    def __init__(self, sizes: PlainValues, times: PlainValues) -> None:
        """
        :param sizes: by inode, of files whose size differs in the mount
        :param times: the same for times of modification; for files in ``sizes``, too
        """
        super().__init__()
        self.nodes = Nodes()
        self._sizes = sizes
        self._times = times
        self._device = os.stat(TOP).st_dev
        self._folders: dict[int, tuple[Node, list[os.DirEntry[str]]]] = {}
        self._next_folder = 0

    # Names

    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        parent = self.nodes[parent_inode]
        text = os.fsdecode(name)
        with REPORTED:
            try:
                status, entry = self.read_attributes(self.nodes.below(parent, text))
            except FileNotFoundError:
                return _absent()
        if status.st_dev != self._device or (parent is self.nodes.top and text == PRIVATE):
            return _absent()
        self.nodes.enter(status.st_ino, parent, text)
        return entry

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        for inode, lookups in inode_list:
            self.nodes.forget(inode, lookups)

    async def mkdir(self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext) -> EntryAttributes:
        return self._make(parent_inode, name, ctx, lambda path: os.mkdir(path, mode & ~ctx.umask))

    async def mknod(self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext) -> EntryAttributes:
        return self._make(parent_inode, name, ctx, lambda path: os.mknod(path, mode & ~ctx.umask, rdev))

    async def symlink(self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext) -> EntryAttributes:
        return self._make(parent_inode, name, ctx, lambda path: os.symlink(os.fsdecode(target), path))

    def _make(
        self, parent_inode: int, name: bytes, ctx: RequestContext, make: Callable[[str], None]
    ) -> EntryAttributes:
        parent, text = self.nodes[parent_inode], os.fsdecode(name)
        with REPORTED:
            path = self.nodes.below(parent, text)
            make(path)
            return self.made(parent, text, path, ctx)

    async def link(self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext) -> EntryAttributes:
        parent, text = self.nodes[new_parent_inode], os.fsdecode(new_name)
        with REPORTED:
            path = self.nodes.below(parent, text)
            os.link(self.path(self.nodes[inode]), path, follow_symlinks=False)
            self.nodes.enter(inode, parent, text)
            return self.attributes(os.lstat(path))

    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        self._remove(parent_inode, name, os.unlink)

    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        self._remove(parent_inode, name, os.rmdir)

    def _remove(self, parent_inode: int, name: bytes, remove: Callable[[str], None]) -> None:
        parent, text = self.nodes[parent_inode], os.fsdecode(name)
        with REPORTED:
            remove(self.nodes.below(parent, text))
        self.nodes.leave(parent, text)

    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        parent, text = self.nodes[parent_inode_old], os.fsdecode(name_old)
        to, to_text = self.nodes[parent_inode_new], os.fsdecode(name_new)
        with REPORTED:
            path = self.nodes.below(to, to_text)
            check_rename(path, flags)
            os.rename(self.nodes.below(parent, text), path)
        self.nodes.rename(parent, text, to, to_text)

    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        with REPORTED:
            return os.fsencode(os.readlink(self.path(self.nodes[inode])))

    # Folders

    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        self._next_folder += 1
        self._folders[self._next_folder] = (self.nodes[inode], [])
        return self._next_folder

    async def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> None:
        folder, entries = self._folders[fh]
        with REPORTED:
            if start_id == 0:
                with os.scandir(self.path(folder)) as found:
                    entries[:] = [one for one in found if folder is not self.nodes.top or one.name != PRIVATE]
            for number in range(start_id, len(entries)):
                name = entries[number].name
                try:
                    status, entry = self.read_attributes(entries[number].path)
                except FileNotFoundError:
                    continue
                if status.st_dev != self._device:
                    continue
                if not pyfuse3.readdir_reply(token, os.fsencode(name), entry, number + 1):
                    return
                self.nodes.enter(status.st_ino, folder, name)

    async def releasedir(self, fh: int) -> None:
        del self._folders[fh]

    async def statfs(self, ctx: RequestContext) -> StatvfsData:
        reply = StatvfsData()
        with REPORTED:
            file_system = os.statvfs(TOP)
        for field in _STATVFS:
            setattr(reply, field, getattr(file_system, field))
        reply.f_namemax = file_system.f_namemax
        return reply

    def path(self, node: Node) -> str:
        """The path of a file.

        :raises OSError: when it no longer has a name, so that the kernel looks the name up again
        """
        path = self.nodes.path(node)
        if path is None:
            raise OSError(errno.ESTALE, "the file has no name any more")
        return path

    def read_attributes(self, file: int | str) -> tuple[os.stat_result, EntryAttributes]:
        """A file of the source folder, and its attributes for the kernel.

        It may be contracted or expanded meanwhile; the attributes are never a mix of both, since the kernel caches
        them.
        """
        while True:
            removals = self._sizes.removals + self._times.removals
            status = os.lstat(file) if isinstance(file, str) else os.fstat(file)
            entry = self.attributes(status)
            if removals == self._sizes.removals + self._times.removals:
                return status, entry

    def attributes(self, status: os.stat_result) -> EntryAttributes:
        """The attributes of a file for the kernel; see :meth:`read_attributes`."""
        entry = EntryAttributes()
        inode = entry.st_ino = status.st_ino
        entry.st_mode = status.st_mode
        entry.st_nlink = status.st_nlink
        entry.st_uid = status.st_uid
        entry.st_gid = status.st_gid
        entry.st_rdev = status.st_rdev
        entry.st_size = status.st_size
        entry.st_blksize = status.st_blksize
        entry.st_blocks = status.st_blocks
        entry.st_atime_ns = status.st_atime_ns
        entry.st_mtime_ns = status.st_mtime_ns
        entry.st_ctime_ns = status.st_ctime_ns
        entry.entry_timeout = KEPT
        entry.attr_timeout = KEPT
        if inode in self._sizes:
            entry.st_size, entry.st_mtime_ns = self._sizes[inode], self._times.get(inode, status.st_mtime_ns)
        return entry

    def made(self, parent: Node, name: str, path: str, ctx: RequestContext, file: int | None = None) -> EntryAttributes:
        """Give a new file to the user who requested it.

        :param file: a descriptor, if it is open
        """
        status = os.lstat(path) if file is None else os.fstat(file)
        if (status.st_uid, status.st_gid) != (ctx.uid, ctx.gid):
            above = os.lstat(self.path(parent))
            os.chown(path, ctx.uid, -1 if above.st_mode & stat.S_ISGID else ctx.gid, follow_symlinks=False)
            status = os.lstat(path)
        self.nodes.enter(status.st_ino, parent, name)
        return self.attributes(status)


def check_rename(path: str, flags: int) -> None:
    """
    :raises OSError: when a rename to a path is not possible with the flags of renameat2
    """
    if flags & ~pyfuse3.RENAME_NOREPLACE:
        raise OSError(errno.EINVAL, "names are not exchanged")
    if flags and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "the name is taken")


def _absent() -> EntryAttributes:
    entry = EntryAttributes()
    entry.st_ino = 0  # the kernel caches that there is none
    entry.entry_timeout = KEPT
    return entry
