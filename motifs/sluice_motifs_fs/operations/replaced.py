"""Opens that have arrived at a file which new content has taken the place of.

The kernel is told ``ESTALE``, and looks the name up again, once.  What the opener gets then is kept for it, and its
name is held so that the runtime does not replace it again.  The old file stays open while the kernel may know it: its
inode would be used again, for the next content.
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


class ReplacedFiles:
    """The files that were replaced, and the openers that look up their names again."""

    def __init__(self, files: MotifFiles, nodes: Nodes) -> None:
        self._files = files
        self._nodes = nodes
        self._mutex = threading.Lock()
        self._retries: dict[int, Retry] = {}
        self._replaced: dict[int, Replaced] = {}
        files.replaced = self.replaced

    def name(self, inode: int) -> str | None:
        """The name of an item that had an inode until new content took its place."""
        with self._mutex:
            return self._replaced[inode].name if inode in self._replaced else None

    def file(self, inode: int) -> int | None:
        """A descriptor of a file that was replaced; None when it was not, or is not kept any more."""
        with self._mutex:
            return self._replaced[inode].file if inode in self._replaced else None

    def keep(self, pid: int, path: str, file: int, watched: WatchedFile) -> bool:
        """Keep what an opener gets when it has looked up the name again; False when that is outdated."""
        if not self._files.files.hold_name(path, file):
            return False
        self._retries[pid] = Retry(path, file, watched, time.monotonic())
        return True

    def forget_openers(self) -> None:
        """Give up what openers have not come for."""
        now = time.monotonic()
        for pid in [one for one, retry in list(self._retries.items()) if now - retry.since > HELD]:
            retry = self._retries.pop(pid, None)
            if retry is not None:
                self.finish(retry, 0)

    def finish(self, retry: Retry, inode: int) -> tuple[int, WatchedFile] | None:
        """What was kept for an opener, if it has come to this inode."""
        self._files.files.release_name(retry.path)
        if os.fstat(retry.file).st_ino == inode:
            return retry.file, retry.watched
        self.close(retry.file, retry.watched)
        return None

    def pop_retry(self, pid: int) -> Retry | None:
        """What is kept for an opener that has come again."""
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
        """New content has taken the place of an item; from any thread, ``file`` is a descriptor of the old one.

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
