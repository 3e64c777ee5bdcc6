"""Content of items and sources in a mount; all other files pass through.

What concerns items and sources runs in threads, but for the close of a file: requests arrive in their order, so a close
that returned before a file is opened is heard of before.

Opening an item whose bytes are gone answers at once, and reads wait for their bytes; new content is waited for, since
it has another size.  New content is another file with another inode, so what the kernel keeps of the old one stays
right: an open that has arrived at the old one is told ``ESTALE``, on which the kernel looks the name up again.  It does
so once; the second time the opener takes what is there, which is newer than its call.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, RequestContext, SetattrFields

from sluice_motifs.expansion.opening import Opened
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.files import SEEN_TO, FileOperations
from sluice_motifs_fs.operations.folders import REPORTED
from sluice_motifs_fs.operations.nodes import Node

#: Requests that wait at once: the kernel's others wait behind them.
WAITING: Final = 512
_WRITING: Final = 64
#: Seconds for which replaced files are kept open, for who has just looked up their names; and how many at most.
_REPLACED_KEPT: Final = 2.0
_MOST_REPLACED: Final = 64

_T = TypeVar("_T")


@dataclass(slots=True)
class WatchedFile:
    """A handle of an item or a source.

    :param stream: where its bytes come from; None when they are in their place
    :param held: whether it keeps them there
    :param writes: whether it is open for writing
    """

    stream: Opened | None = None
    held: bool = False
    writes: bool = False


class ItemOperations(FileOperations):
    """The methods are described by pyfuse3.

    :param mount_point: where the mount is
    """

    def __init__(self, files: MotifFiles, mount_point: str) -> None:
        super().__init__(files.files.sizes)
        self._files = files
        self._index = files.index
        self._mount_point = mount_point
        self._watched: dict[int, WatchedFile] = {}
        self._retrying: OrderedDict[int, float] = OrderedDict()
        self._replaced: OrderedDict[int, tuple[int, float]] = OrderedDict()
        self._barriers: dict[int, threading.Event] = {}
        self._passed: dict[int, threading.Event] = {}
        self._waiting = trio.CapacityLimiter(WAITING)
        self._writing = trio.CapacityLimiter(_WRITING)
        files.hear_closes = self.hear_closes
        files.replaced = self.replaced

    async def wait_for(self, call: Callable[..., _T], *arguments: Any, writing: bool = False) -> _T:
        """Run in a thread what may wait; its errors are those of the mount."""
        with REPORTED:
            limiter = self._writing if writing else self._waiting
            return await trio.to_thread.run_sync(call, *arguments, limiter=limiter)

    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self.nodes[inode]
        path = self.nodes.path(node)
        if path is None:
            return self._open_replaced(node, flags, ctx)
        if not self._index.watches(path):
            return await super().open(inode, flags, ctx)
        again = self._retrying.pop(ctx.pid, None) is not None
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if writes or path not in self._index.items:
            file = await self.wait_for(self._open_for_writing if writes else self._open_source, path, flags)
            watched: WatchedFile | None = WatchedFile(held=writes, writes=writes)
        else:
            file, watched = await self.wait_for(self._open_item, path, again)
        if watched is None or os.fstat(file).st_ino != inode:
            self._close(file, watched)
            if again and inode in self._replaced:
                return self._open_replaced(node, flags, ctx)
            raise self._look_up_again(ctx)
        self._watched[file] = watched
        reply = self.enter_file(file, node)
        reply.keep_cache = watched.stream is None
        reply.direct_io = watched.stream is not None and not watched.stream.same()
        return reply

    def _open_source(self, path: str, flags: int) -> int:
        return os.open(path, flags & ~SEEN_TO | os.O_CLOEXEC)

    def _open_item(self, path: str, again: bool) -> tuple[int, WatchedFile | None]:
        """A descriptor, and where the bytes come from; None for new content that has taken the place of the old."""
        while True:
            opened = None if again else self._files.open(path)
            if opened is None:
                file = self._files.hold(path)
                if file is not None:
                    return file, WatchedFile(held=True)
                again = False
                continue
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if opened.same():
                    return file, WatchedFile(opened)
                self._files.wait(opened)
            except BaseException:
                opened.close()
                os.close(file)
                raise
            if os.fstat(file).st_ino != self._index.items.get(path):
                opened.close()
                return file, None
            return file, WatchedFile(opened)  # it was not stored

    def _open_for_writing(self, path: str, flags: int) -> int:
        truncated = bool(flags & os.O_TRUNC)
        with self._files.changing([path]):
            while True:
                if not truncated:
                    self._files.expand(path)
                file = self._files.hold(path, flags & ~SEEN_TO & ~os.O_TRUNC, truncated)
                if file is None:
                    continue
                self._files.tracker.file(os.fstat(file).st_ino).writers += 1
                if truncated:
                    self._change(file, os.ftruncate, file, 0)
                return file

    def _open_replaced(self, node: Node, flags: int, ctx: RequestContext) -> FileInfo:
        """Of a file that has no name any more, since new content has just taken its place."""
        kept = self._replaced.get(node.inode)
        if kept is None or self._retrying.pop(ctx.pid, None) is None or flags & os.O_ACCMODE != os.O_RDONLY:
            raise self._look_up_again(ctx)
        return self.enter_file(os.dup(kept[0]), node)

    def _look_up_again(self, ctx: RequestContext) -> FUSEError:
        self._retrying[ctx.pid] = time.monotonic()
        while len(self._retrying) > WAITING:
            self._retrying.popitem(last=False)
        return FUSEError(errno.ESTALE)

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
        node = self._opened.pop(fh)
        node.files.remove(fh)
        watched = self._watched.pop(fh, None)
        with REPORTED:
            if watched is None:
                os.close(fh)
                return
            if watched.writes:
                tracked = self._files.tracker.file(node.inode)
                tracked.writers -= 1
                if not tracked.writers:
                    tracked.settle(fh)
                self._note(node)
            self._close(fh, watched)

    def _close(self, file: int, watched: WatchedFile | None) -> None:
        if watched is not None and watched.stream is not None:
            watched.stream.close()
        if watched is not None and watched.held:
            self._files.release(file)
        else:
            os.close(file)

    def _note(self, node: Node) -> None:
        """What was an item may be none after it was written."""
        path = self.nodes.path(node)
        if path is not None and path in self._index.items:
            self._files.note(path)

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
        """An open file has become an item or a source."""
        if file in self._watched:
            return
        writes = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        tracked = self._files.tracker.file(node.inode)
        with tracked.changed:
            tracked.readers += 1
            tracked.writers += writes
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
        tracked = self._files.tracker.file(os.fstat(file).st_ino)
        try:
            self._change(file, os.ftruncate, file, size)
        finally:
            tracked.writers -= 1
            if not tracked.writers:
                tracked.settle(file)
            self._files.release(file)
            self._files.note(path)

    def set_times(self, file: int | str, accessed: int, modified: int) -> None:
        if isinstance(file, str) and file not in self._index.items:
            super().set_times(file, accessed, modified)
            return
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC) if isinstance(file, str) else os.dup(file)
        try:
            self._files.files.set_times(opened, accessed, modified)
        finally:
            os.close(opened)

    # New content

    def replaced(self, name: str, file: int) -> None:
        """New content has taken the place of an item; from any thread, ``file`` is a descriptor of the old one."""
        kept = os.dup(file)
        try:
            pyfuse3.trio_token.run_sync_soon(self._note_replaced, name, kept)  # type: ignore[union-attr]
        except (trio.RunFinishedError, AttributeError):
            os.close(kept)

    def _note_replaced(self, name: str, file: int) -> None:
        inode, now = os.fstat(file).st_ino, time.monotonic()
        self._replaced[inode] = (file, now)
        while self._replaced:
            oldest, (kept, since) = next(iter(self._replaced.items()))
            if now - since < _REPLACED_KEPT and len(self._replaced) <= _MOST_REPLACED:
                break
            os.close(kept)
            del self._replaced[oldest]
        *folders, last = name.split("/")
        parent = self.nodes.top
        for one in folders:
            below = parent.children.get(one)
            if below is None:
                return
            parent = below
        node = parent.children.get(last)
        if node is not None and node.inode == inode:
            self.nodes.leave(parent, last)
            pyfuse3.invalidate_entry_async(parent.inode, os.fsencode(last), ignore_enoent=True)

    # Closes

    def hear_closes(self) -> None:
        """Wait, in a thread, until all closes that have returned were heard of.

        The kernel sends them in their order, and may hold some back while others are being answered.  So a folder is
        opened and closed, and that is waited for.
        """
        passed = self._barriers[threading.get_native_id()] = threading.Event()
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
