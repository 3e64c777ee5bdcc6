"""Content of items and sources in a mount; all other files pass through.

Operations on items and sources run in threads, except the close of a file: requests arrive in their order, so a close
that returned before a file is opened is processed before.

Opening a contracted item returns at once, and reads wait for their bytes; the opener waits for new content, since
it has another size.  New content is another file with another inode, so the kernel's cache of the old one stays
valid (``replaced``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, RequestContext, SetattrFields

from sluice_motifs.expansion.opening import Opened
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.files import SEEN_TO, FileOperations
from sluice_motifs_fs.operations.folders import REPORTED
from sluice_motifs_fs.operations.nodes import Node
from sluice_motifs_fs.operations.replaced import ReplacedFiles, WatchedFile

#: Requests that wait concurrently: further requests of the kernel wait behind them.
WAITING: Final = 512
_WRITING: Final = 64
#: Expansions to new content after which an opener gets it although it was not stored.
_ATTEMPTS: Final = 3

_T = TypeVar("_T")


class ItemOperations(FileOperations):
    """The methods are described by pyfuse3.

    :param mount_point: where the mount is
    """

    def __init__(self, files: MotifFiles, mount_point: str) -> None:
        super().__init__(files.files.sizes, files.files.times)
        self._files = files
        self._index = files.index
        self._mount_point = mount_point
        self._watched: dict[int, WatchedFile] = {}
        self._replaced = ReplacedFiles(files, self.nodes)
        self._barriers: dict[int, threading.Event] = {}
        self._passed: dict[int, threading.Event] = {}
        self._waiting = trio.CapacityLimiter(WAITING)
        self._writing = trio.CapacityLimiter(_WRITING)
        files.runtime.wait_for_closes = self.wait_for_closes

    async def wait_for(self, call: Callable[..., _T], *arguments: Any, writing: bool = False) -> _T:
        """Run a call that may wait in a thread; its errors become those of the mount."""
        with REPORTED:
            limiter = self._writing if writing else self._waiting
            return await trio.to_thread.run_sync(call, *arguments, limiter=limiter)

    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self.nodes[inode]
        path = self.nodes.path(node) or self._replaced.name(inode)
        if path is not None and path not in self._index.items and path not in self._index.sources:
            with REPORTED:
                return self.open_file(node, path, flags)
        if path is None:
            raise FUSEError(errno.ESTALE)
        retry = self._replaced.pop_retry(ctx.pid)
        kept = None if retry is None else await self.wait_for(self._replaced.finish, retry, inode)
        while True:
            file, watched = await self.wait_for(self._open, path, flags) if kept is None else kept
            if os.fstat(file).st_ino == inode:
                break
            if retry is not None:
                self._replaced.close(file, watched)
                raise FUSEError(errno.ESTALE)
            if await self.wait_for(self._replaced.keep, ctx.pid, path, file, watched):
                raise FUSEError(errno.ESTALE)
            self._replaced.close(file, watched)
        self._watched[file] = watched
        reply = self.enter_file(file, node)
        reply.keep_cache = watched.stream is None
        reply.direct_io = watched.stream is not None and not watched.stream.same()
        return reply

    def _open(self, path: str, flags: int) -> tuple[int, WatchedFile]:
        """A descriptor for a client's open; new content has another inode."""
        self._replaced.forget_openers()
        if flags & os.O_ACCMODE != os.O_RDONLY:
            return self._open_for_writing(path, flags), WatchedFile(held=True, writes=True)
        if path not in self._index.items:
            return os.open(path, flags & ~SEEN_TO | os.O_CLOEXEC), WatchedFile()
        attempts = 0
        while True:
            opened = self._files.runtime.open(path)
            if opened is None:
                file = self._files.hold(path)
                if file is not None:
                    return file, WatchedFile(held=True)
                continue
            attempts += 1
            try:
                handle = self._follow(path, opened, attempts > _ATTEMPTS)
            except BaseException:
                opened.close()
                raise
            if handle is None or handle[1].stream is None:
                opened.close()
            if handle is not None:
                return handle

    def _follow(self, path: str, opened: Opened, anyway: bool) -> tuple[int, WatchedFile] | None:
        """The handle that an opener gets from an expansion; None when it opens the item once more.

        :param anyway: whether it accepts new content that was not stored
        """
        same = opened.same()
        if same or anyway:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            # meanwhile, later content may have replaced the one that is being made
            if os.fstat(file).st_ino == opened.view.opaque[0] or not same:
                return file, WatchedFile(opened)
            os.close(file)
            return None
        self._files.runtime.wait(opened)
        held = self._files.hold(path)
        if held is not None and os.fstat(held).st_ino == opened.view.opaque[0]:
            self._files.release(held)
            return None
        return None if held is None else (held, WatchedFile(held=True))

    def _open_for_writing(self, path: str, flags: int) -> int:
        truncated = bool(flags & os.O_TRUNC)
        while True:
            if not truncated:
                self._files.runtime.expand(path)
            file = self._files.hold(path, flags & ~SEEN_TO & ~os.O_TRUNC, truncated)
            if file is None:
                continue
            if truncated:
                self._change(file, os.ftruncate, file, 0)
            return file

    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        node = self.nodes[inode]
        if node.files or self.nodes.path(node) is not None:
            found = await super().getattr(inode, ctx)
            if found.st_ino == inode or node is self.nodes.top:
                return found
        with REPORTED:  # new content has replaced it, or does so now
            file = node.files[0] if node.files else self._replaced.file(inode)
            if file is None:
                raise FUSEError(errno.ESTALE)
            return self.read_attributes(file)[1]

    async def read(self, fh: int, off: int, size: int) -> bytes:
        watched = self._watched.get(fh)
        if watched is None or watched.stream is None:
            with REPORTED:
                return os.pread(fh, size, off)
        return await self.wait_for(_read_stream, watched.stream, off, size)

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        if fh not in self._watched:
            with REPORTED:
                return os.pwrite(fh, buf, off)
        return await self.wait_for(self._change, fh, os.pwrite, fh, buf, off, writing=True)

    def _change(self, file: int, change: Callable[..., _T], *arguments: Any) -> _T:
        with self._files.files.changing(file):
            return change(*arguments)

    async def release(self, fh: int) -> None:
        node = self.leave_file(fh)
        watched = self._watched.pop(fh, None)
        with REPORTED:
            if watched is None:
                os.close(fh)
                return
            self._replaced.close(fh, watched)
            path = self.nodes.path(node)
            if path is not None and path in self._index.items:
                if watched.writes:  # it may be no item after the write
                    self._files.runtime.note(path)
                self._files.space.closed(path)

    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        reply = await super().create(parent_inode, name, mode, flags, ctx)
        node = self._opened[reply[0].fh]
        path = self.nodes.path(node)
        if path in self._index.sources:
            self.watch(reply[0].fh, node)
        return reply

    def watch(self, file: int, node: Node) -> None:
        """Handle an open file that has become an item or a source."""
        if file in self._watched:
            return
        writes = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        self._files.tracker.file(node.inode).hold(writes)
        self._watched[file] = WatchedFile(held=True, writes=writes)

    async def setattr(
        self, inode: int, attr: EntryAttributes, fields: SetattrFields, fh: int | None, ctx: RequestContext
    ) -> EntryAttributes:
        path = self.nodes.path(self.nodes[inode])
        if path is None or not self._index.watches(path):
            return await super().setattr(inode, attr, fields, fh, ctx)
        if fields.update_size:
            if fh is None or fh not in self._watched:
                await self.wait_for(self._truncate, path, attr.st_size, writing=True)
            else:
                await self.wait_for(self._change, fh, os.ftruncate, fh, attr.st_size, writing=True)
        return await self.set_attributes(inode, attr, fields, fh, ctx)

    def _truncate(self, path: str, size: int) -> None:
        flags = os.O_WRONLY | (os.O_TRUNC if size == 0 else 0)
        file = self._open_for_writing(path, flags)
        try:
            self._change(file, os.ftruncate, file, size)
        finally:
            self._files.release(file, writes=True)
            self._files.runtime.note(path)

    def set_times(self, file: int | str, accessed: int, modified: int) -> None:
        if isinstance(file, str) and file not in self._index.items:
            super().set_times(file, accessed, modified)
            return
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC) if isinstance(file, str) else os.dup(file)
        try:
            self._files.files.set_times(opened, accessed, modified)
        finally:
            os.close(opened)

    # Closes

    def wait_for_closes(self) -> None:
        """Wait, in a thread, until all closes that have returned were processed.

        The kernel sends them in their order, and may hold some back while others are being answered.  So a folder is
        opened and closed, and the thread waits for that.
        """
        passed = self._barriers[threading.get_native_id()] = threading.Event()
        with contextlib.suppress(OSError):  # the folder is being unmounted
            os.close(os.open(self._mount_point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            passed.wait(1.0)

    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        folder = await super().opendir(inode, ctx)
        passed = self._barriers.pop(ctx.pid, None)
        if passed is not None:
            self._passed[folder] = passed
        return folder

    async def releasedir(self, fh: int) -> None:
        await super().releasedir(fh)
        if fh in self._passed:
            self._passed.pop(fh).set()


def _read_stream(stream: Opened, start: int, size: int) -> bytes:
    return b"".join(stream.read(start, start + size))
