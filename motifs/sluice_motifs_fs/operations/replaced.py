"""Opens of files that new content has replaced.

The kernel gets ``ESTALE``, and looks the name up again, once.  The opener's handle is kept until then, and its
name is held so that the runtime does not replace it again.  The old file stays open while the kernel may know it:
otherwise its inode would be used again, for the next content.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass

import pyfuse3
import trio

from sluice_motifs.expansion.opening import Opened
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.nodes import Nodes
from sluice_motifs_fs.storage.stored_files import HELD


@dataclass(slots=True)
class WatchedFile:
    """A handle of an item or a source.

    :param stream: makes its bytes; None when they are stored
    :param held: whether it keeps the item expanded
    :param writes: whether it is open for writing
    """

    stream: Opened | None = None
    held: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """The state kept for an opener that looks up a name again; the name is held meanwhile.

    :param since: seconds of the clock
    """

    path: str
    file: int
    watched: WatchedFile
    since: float


@dataclass(frozen=True, slots=True)
class Replaced:
    """An item that new content has replaced.

    :param file: a descriptor of the old one
    :param since: seconds of the clock
    """

    name: str
    file: int
    since: float


class ReplacedFiles:
    """The replaced files, and the openers that look up their names again."""

    def __init__(self, files: MotifFiles, nodes: Nodes) -> None:
        self._files = files
        self._nodes = nodes
        self._mutex = threading.Lock()
        self._retries: dict[int, Retry] = {}
        self._replaced: dict[int, Replaced] = {}
        files.replaced = self.replaced

    def name(self, inode: int) -> str | None:
        """The name of an item that had an inode until new content replaced it."""
        with self._mutex:
            return self._replaced[inode].name if inode in self._replaced else None

    def file(self, inode: int) -> int | None:
        """A descriptor of a replaced file; None when it was not replaced, or is no longer kept."""
        with self._mutex:
            return self._replaced[inode].file if inode in self._replaced else None

    def keep(self, pid: int, path: str, file: int, watched: WatchedFile) -> bool:
        """Keep the handle of an opener that looks up the name again; return False when that is outdated."""
        if not self._files.files.hold_name(path, file):
            return False
        self._retries[pid] = Retry(path, file, watched, time.monotonic())
        return True

    def forget_openers(self) -> None:
        """Drop the state of openers that have not returned."""
        now = time.monotonic()
        for pid in [one for one, retry in list(self._retries.items()) if now - retry.since > HELD]:
            retry = self._retries.pop(pid, None)
            if retry is not None:
                self.finish(retry, 0)

    def finish(self, retry: Retry, inode: int) -> tuple[int, WatchedFile] | None:
        """Return the state kept for an opener, if it has opened this inode."""
        self._files.files.release_name(retry.path)
        if os.fstat(retry.file).st_ino == inode:
            return retry.file, retry.watched
        self.close(retry.file, retry.watched)
        return None

    def pop_retry(self, pid: int) -> Retry | None:
        """Return the state kept for an opener that has returned."""
        return self._retries.pop(pid, None)

    def close(self, file: int, watched: WatchedFile) -> None:
        """Close a handle."""
        if watched.stream is not None:
            watched.stream.close()
        if watched.held:
            self._files.release(file, watched.writes)
        else:
            os.close(file)

    def replaced(self, name: str, file: int) -> None:
        """Record that new content has replaced an item; from any thread, ``file`` is a descriptor of the old one.

        The old one is kept open while the kernel may know it, since its inode would be used again.
        """
        inode, now = os.fstat(file).st_ino, time.monotonic()
        with self._mutex:
            for one in [old_inode for old_inode, kept in self._replaced.items() if now - kept.since > HELD]:
                if one not in self._nodes:
                    self._files.files.sizes.remove(one)
                    os.close(self._replaced.pop(one).file)
            self._replaced[inode] = Replaced(name, os.dup(file), now)
        with contextlib.suppress(trio.RunFinishedError, AttributeError):
            pyfuse3.trio_token.run_sync_soon(self._note_replaced, name, inode)  # type: ignore[union-attr]

    def _note_replaced(self, name: str, inode: int) -> None:
        *folders, last = name.split("/")
        parent = self._nodes.top
        for one in folders:
            below = parent.children.get(one)
            if below is None:
                return
            parent = below
        node = parent.children.get(last)
        if node is not None and node.inode == inode:
            self._nodes.leave(parent, last)
            pyfuse3.invalidate_entry_async(parent.inode, os.fsencode(last), ignore_enoent=True)
