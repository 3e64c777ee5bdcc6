"""The runtime of motifs with the additions for a file system.

An expansion pins its sources before it begins (``storage.tracking``), so an opener of an item waits for the clients
that write these, and the item is made from one content of each.  The index of the mount is updated with the states of
items.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from weakref import WeakValueDictionary

from sluice_core.errors import PeerError
from sluice_motifs.contraction.preparation import HEAD
from sluice_motifs.dependencies.freshness import Templates, sources_by_name
from sluice_motifs.expansion.opening import PATIENCE, ExpansionConfig, Opened
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import ItemView, Motif
from sluice_motifs.storage.shim import find_item
from sluice_motifs_fs.storage.copies import is_copy
from sluice_motifs_fs.storage.shim import FileShim
from sluice_motifs_fs.storage.stored_files import StoredFiles

_NONE: Final[frozenset[str]] = frozenset()
#: Seconds for which an expansion waits for the openers of an item that it reads: they may wait for the expansion.
_NESTED: Final = 1.0


class ItemIndex:
    """The files that are items, and those that are sources of items, in memory: a mount needs them at each request.

    A scan of the folder fills it.  ``items`` has inodes by name.  Dictionaries are read without a lock, with one lookup
    for each request.
    """

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.sources: dict[str, set[str]] = {}
        self._read_by_item: dict[str, tuple[str, ...]] = {}
        self._mutex = threading.RLock()

    def watches(self, name: str) -> bool:
        """Whether a file is an item or a source."""
        return name in self.items or name in self.sources

    def put(self, name: str, inode: int, sources: Iterable[str]) -> None:
        """Add an item, and its sources; a concurrent reader sees it before or after."""
        with self._mutex:
            now = tuple(sources)
            before = self._read_by_item.get(name, ())
            for source in now:
                self.sources.setdefault(source, set()).add(name)
            self.items[name] = inode
            self._read_by_item[name] = now
            self._stop_reading(name, before, now)

    def remove(self, name: str) -> None:
        """Remove a file that is no longer an item."""
        with self._mutex:
            self.items.pop(name, None)
            self._stop_reading(name, self._read_by_item.pop(name, ()), ())

    def _stop_reading(self, name: str, before: Iterable[str], now: Iterable[str]) -> None:
        for source in set(before).difference(now):
            readers = self.sources.get(source, set())
            readers.discard(name)
            if not readers:
                self.sources.pop(source, None)

    def concerns(self, name: str, to: str) -> bool:
        """Whether a rename of a file or a folder concerns items or sources."""
        if not self.items:
            return False
        return self.watches(name) or self.watches(to) or bool(self.items_below(name) or self.sources_below(name))

    def readers(self, source: str) -> frozenset[str]:
        """The items that read a source."""
        with self._mutex:
            return frozenset(self.sources.get(source, _NONE))

    def sources_below(self, name: str) -> list[str]:
        """The sources that are this file, or are in this folder."""
        with self._mutex:
            return [one for one in self.sources if one == name or one.startswith(f"{name}/")]

    def items_below(self, name: str) -> list[str]:
        """The items that are this file, or are in this folder."""
        with self._mutex:
            return [one for one in self.items if one == name or one.startswith(f"{name}/")]


class FileRuntime(Runtime):
    """The runtime of one folder.

    :param index: of items and their sources
    """

    def __init__(self, shim: FileShim, files: StoredFiles, templates: Templates, index: ItemIndex) -> None:
        #: called before sources that are being written are viewed: all returned closes have been processed then
        self.wait_for_closes: Callable[[], None] = lambda: None
        self._files = files
        self._file_shim = shim
        self._index = index
        self._mutex = threading.Lock()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        config = ExpansionConfig(spawn=shim.pinning.spawn)
        super().__init__(shim, LocalLeases(), templates, config=config, may_share=shim.may_share)

    def open(self, name: str, chain: tuple[str, ...] = ()) -> Opened | None:
        """Return an expansion of a contracted or stale item; None when its bytes are stored.

        :raises NotFound: when the file does not exist
        :raises ExpansionError: when its bytes cannot be made
        """
        with self._opening(name, chain):
            opened = self._open(name, chain)
        self.items.note_open(name, self._config.clock())
        return opened

    @contextlib.contextmanager
    def _opening(self, name: str, chain: tuple[str, ...]) -> Iterator[None]:
        """Admit one opener at a time: one with older pinned sources would undo the result of a later one."""
        with self._mutex:
            lock = self._locks.setdefault(name, threading.Lock())
        held = lock.acquire(timeout=_NESTED if chain else PATIENCE)
        try:
            yield
        finally:
            if held:
                lock.release()

    def _open(self, name: str, chain: tuple[str, ...]) -> Opened | None:
        waited = False
        while True:
            view = find_item(self._file_shim, name, "file")
            state = self._freshness.check_sources(view)
            viewed = {one for one in state.closure if not is_copy(one)}
            if not waited and any(map(self._files.written, viewed)):
                self.wait_for_closes()
                waited = True
            elif not view.contracted and not state.stale:
                if state.gone:
                    self._openings.open(name, chain).close()  # detaches the motifs that read them
                    self.note(name)
                return None
            else:
                # sources that are items are opened when they are read: they may be stale themselves
                pins = self._file_shim.pinning.pin(frozenset(viewed - self._index.items.keys() - {name}))
                try:
                    with self._file_shim.pinning.reading(pins):
                        opened = self._openings.open(name, chain)
                finally:
                    pins.release()
                if opened.expansion is not None:
                    return opened

    def expand(self, name: str) -> None:
        """Make the bytes of an item, and wait until they are stored.

        :raises ExpansionError: when they cannot be made, or stored
        """
        with self._opening(name, ()):
            opened = self._open(name, ())
        if opened is not None:
            try:
                self.wait(opened)
            finally:
                opened.close()

    def wait(self, opened: Opened) -> None:
        """Wait until an expansion has ended.

        :raises ExpansionError: when it fails
        """
        if opened.expansion is not None:
            opened.expansion.stream.wait()
            self._openings.active.wait(opened.expansion)

    def contract(self, name: str, verify: str = HEAD) -> str:
        try:
            return super().contract(name, verify)
        finally:
            self.note(name)

    def attach_motif(self, name: str, motif: Motif) -> None:
        super().attach_motif(name, motif)
        self.note(name)

    def note(self, name: str) -> None:
        """View a file that may have changed, and record its state."""
        try:
            view = self._files.find(name)
        except PeerError:
            return
        if view is None or not view.record.motifs:
            self.forget(name)
        else:
            self.note_view(view)

    def forget(self, name: str) -> None:
        """Record that a file is no longer an item, or was deleted."""
        self._index.remove(name)
        self.notify_delete(name)

    def note_view(self, view: ItemView) -> None:
        sources = sources_by_name(view.record.motifs, view.name, self._templates)
        self._index.put(view.name, view.opaque[0], sources)
        self.items.put(view.name, view.plain.size, not view.contracted)

    # Observer of expansions

    def _note_expanded(self, view: ItemView) -> None:
        self.note(view.name)

    def _note_contraction(self, view: ItemView) -> None:
        super()._note_contraction(view)
        self.note(view.name)

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        super().detached(view, motifs, sources)
        self.note(view.name)
