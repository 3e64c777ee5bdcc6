"""Attributes and content of files of a mount that shows a folder unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from pyfuse3 import EntryAttributes, FileInfo, RequestContext, SetattrFields

from sluice_motifs_fs.operations.folders import REPORTED, FolderOperations
from sluice_motifs_fs.operations.nodes import Node
from sluice_motifs_fs.storage.stored_files import PlainValues

#: Flags of an open that do not matter for the source file: the kernel has handled them.
SEEN_TO: Final = os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DIRECT


class FileOperations(FolderOperations):
    """All operations; the methods are described by pyfuse3.  A file handle is a descriptor of the source file."""

    def __init__(self, sizes: PlainValues, times: PlainValues) -> None:
        super().__init__(sizes, times)
        self._opened: dict[int, Node] = {}

    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        node = self.nodes[inode]
        with REPORTED:
            return self.read_attributes(self.file(node, None))[1]

    async def setattr(
        self, inode: int, attr: EntryAttributes, fields: SetattrFields, fh: int | None, ctx: RequestContext
    ) -> EntryAttributes:
        if fields.update_size:
            with REPORTED:
                os.truncate(self.file(self.nodes[inode], fh), attr.st_size)
        return await self.set_attributes(inode, attr, fields, fh, ctx)

    async def set_attributes(
        self, inode: int, attr: EntryAttributes, fields: SetattrFields, fh: int | None, ctx: RequestContext
    ) -> EntryAttributes:
        """Set all attributes but the size; return the present ones."""
        node = self.nodes[inode]
        with REPORTED:
            if fields.update_mode:
                os.chmod(self.file(node, fh), stat.S_IMODE(attr.st_mode))
            if fields.update_uid or fields.update_gid:
                file = self.file(node, fh)
                uid = attr.st_uid if fields.update_uid else -1
                gid = attr.st_gid if fields.update_gid else -1
                os.chown(file, uid, gid, follow_symlinks=isinstance(file, int))
            if fields.update_atime or fields.update_mtime:
                file = self.file(node, fh)
                status = os.fstat(file) if isinstance(file, int) else os.lstat(file)
                self.set_times(
                    file,
                    attr.st_atime_ns if fields.update_atime else status.st_atime_ns,
                    attr.st_mtime_ns if fields.update_mtime else status.st_mtime_ns,
                )
        return await self.getattr(inode, ctx)

    def set_times(self, file: int | str, accessed: int, modified: int) -> None:
        """Set the times of a file in nanoseconds."""
        os.utime(file, ns=(accessed, modified), follow_symlinks=isinstance(file, int))

    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self.nodes[inode]
        with REPORTED:
            return self.open_file(node, self.path(node), flags)

    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        parent, text = self.nodes[parent_inode], os.fsdecode(name)
        with REPORTED:
            path = self.nodes.below(parent, text)
            kept = flags & ~SEEN_TO | flags & os.O_EXCL
            file = os.open(path, kept | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode & ~ctx.umask)
            try:
                entry = self.made(parent, text, path, ctx, file)
            except BaseException:
                os.close(file)
                raise
        return self.enter_file(file, self.nodes[entry.st_ino]), entry

    def open_file(self, node: Node, path: str, flags: int) -> FileInfo:
        """Open a file unchanged."""
        return self.enter_file(os.open(path, (flags & ~SEEN_TO) | os.O_CLOEXEC), node)

    def enter_file(self, file: int, node: Node) -> FileInfo:
        """The handle of an open file."""
        node.files += (file,)
        self._opened[file] = node
        return FileInfo(fh=file)

    def leave_file(self, file: int) -> Node:
        """The file of a handle that the kernel closes."""
        node = self._opened.pop(file)
        node.files = () if node.files == (file,) else tuple(one for one in node.files if one != file)
        return node

    async def read(self, fh: int, off: int, size: int) -> bytes:
        with REPORTED:
            return os.pread(fh, size, off)

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        with REPORTED:
            return os.pwrite(fh, buf, off)

    async def release(self, fh: int) -> None:
        self.leave_file(fh)
        with REPORTED:
            os.close(fh)

    async def fsync(self, fh: int, datasync: bool) -> None:
        with REPORTED:
            (os.fdatasync if datasync else os.fsync)(fh)

    # Extended attributes

    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> None:
        with REPORTED:
            file = self.file(self.nodes[inode], None)
            os.setxattr(file, name, value, follow_symlinks=isinstance(file, int))

    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        return self.read_attribute(inode, name)

    def read_attribute(self, inode: int, name: bytes) -> bytes:
        """An extended attribute of the source file; the kernel asks for one before each write."""
        with REPORTED:
            file = self.file(self.nodes[inode], None)
            return os.getxattr(file, name, follow_symlinks=type(file) is int)

    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        with REPORTED:
            file = self.file(self.nodes[inode], None)
            return [os.fsencode(one) for one in os.listxattr(file, follow_symlinks=isinstance(file, int))]

    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        with REPORTED:
            file = self.file(self.nodes[inode], None)
            os.removexattr(file, name, follow_symlinks=isinstance(file, int))

    def file(self, node: Node, fh: int | None) -> int | str:
        """How to address a file: its handle, its path, or a descriptor of a deleted one."""
        if fh is not None:
            return fh
        return node.files[0] if self.nodes.path(node) is None and node.files else self.path(node)
