"""A mount by pyfuse3 that shows a folder unchanged, without motifs: the reference for the file-system shim.

    python -m benchmarks.motifs.loopback SOURCE MOUNTPOINT

It is a minimal loopback for files, folders, attributes and extended attributes.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from typing import Any, Final

import pyfuse3
import trio

#: Seconds for which the kernel caches names and attributes.
KEPT: Final = 3600.0
_FIELDS: Final = (
    *("st_ino", "st_mode", "st_nlink", "st_uid", "st_gid", "st_rdev", "st_size", "st_blksize", "st_blocks"),
    *("st_atime_ns", "st_mtime_ns", "st_ctime_ns"),
)


class _Errors:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, OSError):
            raise pyfuse3.FUSEError(error.errno)


ERRORS: Final = _Errors()


class Loopback(pyfuse3.Operations):
    """Paths by inode; pyfuse3 documents the methods."""

    supports_dot_lookup = False

    def __init__(self, source: str) -> None:
        super().__init__()
        self._paths: dict[int, str] = {pyfuse3.ROOT_INODE: source}
        self._lookups: dict[int, int] = {}
        self._folders: dict[int, list[os.DirEntry[str]]] = {}

    def _below(self, parent: int, name: bytes) -> str:
        return f"{self._paths[parent]}/{os.fsdecode(name)}"

    def _entry(self, found: os.stat_result) -> pyfuse3.EntryAttributes:
        entry = pyfuse3.EntryAttributes()
        for field in _FIELDS:
            setattr(entry, field, getattr(found, field))
        entry.entry_timeout = entry.attr_timeout = KEPT
        return entry

    def _enter(self, path: str, found: os.stat_result) -> pyfuse3.EntryAttributes:
        self._paths[found.st_ino] = path
        self._lookups[found.st_ino] = self._lookups.get(found.st_ino, 0) + 1
        return self._entry(found)

    async def lookup(self, parent_inode, name, ctx):
        path = self._below(parent_inode, name)
        with ERRORS:
            try:
                return self._enter(path, os.lstat(path))
            except FileNotFoundError:
                entry = pyfuse3.EntryAttributes()
                entry.st_ino, entry.entry_timeout = 0, KEPT
                return entry

    async def forget(self, inode_list):
        for inode, lookups in inode_list:
            self._lookups[inode] -= lookups
            if not self._lookups[inode]:
                del self._lookups[inode], self._paths[inode]

    async def getattr(self, inode, ctx):
        with ERRORS:
            return self._entry(os.lstat(self._paths[inode]))

    async def setattr(self, inode, attr, fields, fh, ctx):
        path = self._paths[inode]
        with ERRORS:
            if fields.update_size:
                os.truncate(path if fh is None else fh, attr.st_size)
            if fields.update_mode:
                os.chmod(path, stat.S_IMODE(attr.st_mode))
            if fields.update_uid or fields.update_gid:
                uid, gid = (attr.st_uid if fields.update_uid else -1), (attr.st_gid if fields.update_gid else -1)
                os.chown(path, uid, gid, follow_symlinks=False)
            if fields.update_atime or fields.update_mtime:
                found = os.lstat(path)
                accessed = attr.st_atime_ns if fields.update_atime else found.st_atime_ns
                modified = attr.st_mtime_ns if fields.update_mtime else found.st_mtime_ns
                os.utime(path, ns=(accessed, modified), follow_symlinks=False)
            return self._entry(os.lstat(path))

    async def mkdir(self, parent_inode, name, mode, ctx):
        path = self._below(parent_inode, name)
        with ERRORS:
            os.mkdir(path, mode & ~ctx.umask)
            return self._enter(path, os.lstat(path))

    async def symlink(self, parent_inode, name, target, ctx):
        path = self._below(parent_inode, name)
        with ERRORS:
            os.symlink(target, path)
            return self._enter(path, os.lstat(path))

    async def readlink(self, inode, ctx):
        with ERRORS:
            return os.fsencode(os.readlink(self._paths[inode]))

    async def unlink(self, parent_inode, name, ctx):
        with ERRORS:
            os.unlink(self._below(parent_inode, name))

    async def rmdir(self, parent_inode, name, ctx):
        with ERRORS:
            os.rmdir(self._below(parent_inode, name))

    async def rename(self, parent_inode_old, name_old, parent_inode_new, name_new, flags, ctx):
        path, to = self._below(parent_inode_old, name_old), self._below(parent_inode_new, name_new)
        with ERRORS:
            os.rename(path, to)
            self._paths[os.lstat(to).st_ino] = to

    async def opendir(self, inode, ctx):
        with ERRORS:
            handle = os.open(self._paths[inode], os.O_RDONLY | os.O_DIRECTORY)
            with os.scandir(self._paths[inode]) as found:
                self._folders[handle] = list(found)
        return handle

    async def readdir(self, fh, start_id, token):
        for number, entry in enumerate(self._folders[fh][start_id:], start_id + 1):
            with ERRORS:
                found = entry.stat(follow_symlinks=False)
            if not pyfuse3.readdir_reply(token, os.fsencode(entry.name), self._entry(found), number):
                return
            self._enter(entry.path, found)

    async def releasedir(self, fh):
        del self._folders[fh]
        os.close(fh)

    async def open(self, inode, flags, ctx):
        with ERRORS:
            return pyfuse3.FileInfo(fh=os.open(self._paths[inode], flags & ~os.O_APPEND))

    async def create(self, parent_inode, name, mode, flags, ctx):
        path = self._below(parent_inode, name)
        with ERRORS:
            handle = os.open(path, flags & ~os.O_APPEND | os.O_CREAT, mode & ~ctx.umask)
            return pyfuse3.FileInfo(fh=handle), self._enter(path, os.fstat(handle))

    async def read(self, fh, off, size):
        with ERRORS:
            return os.pread(fh, size, off)

    async def write(self, fh, off, buf):
        with ERRORS:
            return os.pwrite(fh, buf, off)

    async def release(self, fh):
        with ERRORS:
            os.close(fh)

    async def fsync(self, fh, datasync):
        with ERRORS:
            (os.fdatasync if datasync else os.fsync)(fh)

    async def setxattr(self, inode, name, value, ctx):
        with ERRORS:
            os.setxattr(self._paths[inode], name, value, follow_symlinks=False)

    async def getxattr(self, inode, name, ctx):
        with ERRORS:
            return os.getxattr(self._paths[inode], name, follow_symlinks=False)

    async def listxattr(self, inode, ctx):
        with ERRORS:
            return [os.fsencode(one) for one in os.listxattr(self._paths[inode], follow_symlinks=False)]

    async def removexattr(self, inode, name, ctx):
        with ERRORS:
            os.removexattr(self._paths[inode], name, follow_symlinks=False)


def main(source: str, mount_point: str) -> None:
    """Serve until SIGTERM."""
    os.umask(0)
    pyfuse3.init(Loopback(source), mount_point, {*pyfuse3.default_options, "fsname=loopback"})
    try:
        trio.run(_serve)
    finally:
        pyfuse3.close()


async def _serve() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_on_signal)
        await pyfuse3.main()
        nursery.cancel_scope.cancel()


async def _end_on_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            pyfuse3.terminate()
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
