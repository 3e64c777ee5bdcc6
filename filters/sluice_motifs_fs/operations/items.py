"""Content of items and sources in a mount; all other files pass through.

What concerns items and sources runs in threads, but for the close of a file: requests arrive in their order, so a close
that returned before a file is opened is heard of before.

Opening an item whose bytes are gone answers at once, and reads wait for their bytes; new content is waited for, since
it has another size.  New content is another file with another inode, so what the kernel keeps of the old one stays
right: an open that has arrived at the old one is told ``ESTALE``, on which the kernel looks the name up again.  It does
so once, and until it comes again the runtime does not replace what it will find.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
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
from sluice_motifs_fs.storage.stored_files import HELD

#: Requests that wait at once: the kernel's others wait behind them.
WAITING: Final = 512
_WRITING: Final = 64
#: Expansions to new content after which an opener takes it although it was not stored.
_ATTEMPTS: Final = 3

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


@dataclass(frozen=True, slots=True)
class Retry:
    """What is kept for an opener that looks up a name again, which is held meanwhile.

    :param since: seconds of the clock
    """

    path: str
    file: int
    watched: WatchedFile
    since: float


@dataclass(frozen=True, slots=True)
class Replaced:
    """An item that new content took the place of.

    :param file: a descriptor of the old one
    :param since: seconds of the clock
    """

    name: str
    file: int
    since: float


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
        self._retries: dict[int, Retry] = {}
        self._replaced: dict[int, Replaced] = {}
        self._mutex = threading.Lock()
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
        path = self.nodes.path(node) or self._replaced_name(inode)
        if path is not None and not self._index.watches(path):
            return await super().open(inode, flags, ctx)
        if path is None:
            raise FUSEError(errno.ESTALE)
        retry = self._retries.pop(ctx.pid, None)
        kept = None if retry is None else await self.wait_for(self._finish, retry, inode)
        while True:
            file, watched = await self.wait_for(self._open, path, flags) if kept is None else kept
            if os.fstat(file).st_ino == inode:
                break
            if retry is not None:
                self._close(file, watched)
                raise FUSEError(errno.ESTALE)
            if await self.wait_for(self._keep, ctx.pid, path, file, watched):
                raise FUSEError(errno.ESTALE)
            self._close(file, watched)
        self._watched[file] = watched
        reply = self.enter_file(file, node)
        reply.keep_cache = watched.stream is None
        reply.direct_io = watched.stream is not None and not watched.stream.same()
        return reply

    def _open(self, path: str, flags: int) -> tuple[int, WatchedFile]:
        """A descriptor of what a client opens, which has another inode where new content has taken its place."""
        self._forget_retries()
        if flags & os.O_ACCMODE != os.O_RDONLY:
            return self._open_for_writing(path, flags), WatchedFile(held=True, writes=True)
        if path not in self._index.items:
            return os.open(path, flags & ~SEEN_TO | os.O_CLOEXEC), WatchedFile()
        attempts = 0
        while True:
            opened = self._files.open(path)
            if opened is None:
                file = self._files.hold(path)
                if file is not None:
                    return file, WatchedFile(held=True)
                continue
            try:
                attempts += 1
                if opened.same() or attempts > _ATTEMPTS:
                    return os.open(path, os.O_RDONLY | os.O_CLOEXEC), WatchedFile(opened)
                self._files.wait(opened)  # then it is opened once more
                file = self._files.hold(path)
            except BaseException:
                opened.close()
                raise
            opened.close()
            if file is not None and os.fstat(file).st_ino != opened.view.opaque[0]:
                return file, WatchedFile(held=True)
            if file is not None:
                self._files.release(file)

    def _keep(self, pid: int, path: str, file: int, watched: WatchedFile) -> bool:
        """Keep what an opener gets when it has looked up the name again; False when that is outdated."""
        if not self._files.files.hold_name(path, file):
            return False
        self._retries[pid] = Retry(path, file, watched, time.monotonic())
        return True

    def _forget_retries(self) -> None:
        """Give up what openers have not come for."""
        now = time.monotonic()
        for pid in [one for one, retry in list(self._retries.items()) if now - retry.since > HELD]:
            retry = self._retries.pop(pid, None)
            if retry is not None:
                self._finish(retry, 0)

    def _finish(self, retry: Retry, inode: int) -> tuple[int, WatchedFile] | None:
        """What was kept for an opener, if it has come to this inode."""
        self._files.files.release_name(retry.path)
        if os.fstat(retry.file).st_ino == inode:
            return retry.file, retry.watched
        self._close(retry.file, retry.watched)
        return None

    def _open_for_writing(self, path: str, flags: int) -> int:
        truncated = bool(flags & os.O_TRUNC)
        with self._files.changing([path]):
            while True:
                if not truncated:
                    self._files.expand(path)
                file = self._files.hold(path, flags & ~SEEN_TO & ~os.O_TRUNC, truncated)
                if file is None:
                    continue
                if truncated:
                    self._change(file, os.ftruncate, file, 0)
                return file

    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        node = self.nodes[inode]
        if node.files or self.nodes.path(node) is not None:
            return await super().getattr(inode, ctx)
        with self._mutex, REPORTED:
            if inode not in self._replaced:
                raise FUSEError(errno.ESTALE)
            return self.attributes(os.fstat(self._replaced[inode].file))

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
            self._close(fh, watched)
            if watched.writes:
                self._note(node)

    def _close(self, file: int, watched: WatchedFile) -> None:
        if watched.stream is not None:
            watched.stream.close()
        if watched.held:
            self._files.release(file, watched.writes)
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
        """New content has taken the place of an item; from any thread, ``file`` is a descriptor of the old one.

        The old one is kept open while the kernel may know it, since its inode would be used again.
        """
        inode, now = os.fstat(file).st_ino, time.monotonic()
        with self._mutex:
            for one in [one for one, kept in self._replaced.items() if now - kept.since > HELD]:
                if one not in self.nodes:
                    os.close(self._replaced.pop(one).file)
            self._replaced[inode] = Replaced(name, os.dup(file), now)
        with contextlib.suppress(trio.RunFinishedError, AttributeError):
            pyfuse3.trio_token.run_sync_soon(self._note_replaced, name, inode)  # type: ignore[union-attr]

    def _replaced_name(self, inode: int) -> str | None:
        """The name of an item that had an inode until new content took its place."""
        with self._mutex:
            return self._replaced[inode].name if inode in self._replaced else None

    def _note_replaced(self, name: str, inode: int) -> None:
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
        with contextlib.suppress(OSError):  # it is being unmounted
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
