"""The motifs of one folder: the runtime with what a file system adds to it.

An expansion pins its sources before it begins (``tracking``), so whoever opens an item waits for the clients that write
these, and reads what was made from one content of each.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from weakref import WeakValueDictionary

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_motifs.api import ExpansionError
from sluice_motifs.contraction import ALREADY, CONTRACTED, HEAD, TRUST
from sluice_motifs.dependencies.freshness import Freshness, Templates, internal_sources, sources_by_name
from sluice_motifs.dependencies.source_changes import LocalDependents
from sluice_motifs.expansion.opening import PATIENCE, Opened, Surroundings
from sluice_motifs.leases import LocalLeases
from sluice_motifs.records import ItemView, Motif
from sluice_motifs.runtime import Runtime
from sluice_motifs_fs.index import ItemIndex
from sluice_motifs_fs.space import SpaceControl
from sluice_motifs_fs.storage.attributes import StoredState, read_stored
from sluice_motifs_fs.storage.paths import SourceFolder
from sluice_motifs_fs.storage.shim import FileShim
from sluice_motifs_fs.storage.stored_files import StoredFiles
from sluice_motifs_fs.storage.tracking import FileTracker

#: Seconds for which an expansion waits for the openers of an item that it reads: they may be waiting for it.
_NESTED: Final = 1.0


class MotifFiles:
    """Items of one folder; :meth:`start` and :meth:`stop` it.  All methods may block.

    :param target: bytes of expanded items; None for any number
    :param policy: which of them are contracted first: the keyword of a replacement policy
    """

    def __init__(
        self,
        folder: SourceFolder,
        templates: Templates,
        target: int | None = None,
        policy: str = "lru",
    ) -> None:
        self.index = ItemIndex()
        self.tracker = FileTracker()
        self.files = StoredFiles(folder, self.tracker)
        self.space = SpaceControl(target, policy, lambda name: self.contract(name, TRUST) in (CONTRACTED, ALREADY))
        self.shim = FileShim(self.files, folder, self.tracker, self._front_door, self._replace)
        #: called before sources that are being written are looked at: all closes that returned have been heard of then
        self.hear_closes: Callable[[], None] = lambda: None
        #: told of an item that another file took the place of, and a descriptor of the old one
        self.replaced: Callable[[str, int], None] = lambda name, file: None
        self._folder = folder
        self._templates = templates
        self._freshness = Freshness(self.shim, templates)
        self._dependents = LocalDependents()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._runtime = _PinningRuntime(self)

    def start(self) -> int:
        """Clear what was left behind and begin; how many items there are.

        :raises PeerError: when the file system holds no extended attributes, or cannot be written
        """
        for view in self.files.recover():
            self._note_view(view)
        found = self._runtime.restart()
        self.space.start()
        return found

    def stop(self) -> None:
        """Contract nothing any more."""
        self.space.stop()

    # What clients do

    def open(self, name: str, chain: tuple[str, ...] = ()) -> Opened | None:
        """An expansion of an item that is not there or out of date; None when its bytes are in their place.

        :raises NotFound: when there is no such file
        :raises ExpansionError: when its bytes cannot be made
        """
        with self._opening(name, chain):
            return self._open(name, chain)

    @contextlib.contextmanager
    def _opening(self, name: str, chain: tuple[str, ...]) -> Iterator[None]:
        """One opener after the other: else one that pinned older sources would undo what a later one has made."""
        lock = self._locks.setdefault(name, threading.Lock())
        held = lock.acquire(timeout=_NESTED if chain else PATIENCE)
        try:
            yield
        finally:
            if held:
                lock.release()

    def _open(self, name: str, chain: tuple[str, ...]) -> Opened | None:
        heard = False
        while True:
            view = self.shim.view(name)
            if view is None:
                raise NotFound(f"there is no file `{name}`")
            state = self._freshness.look(view)
            if not heard and any(map(self._written, state.closure)):
                self.hear_closes()
                heard = True
            elif not view.contracted and not state.stale:
                if state.gone:
                    self._runtime.opened(name, chain).close()  # detaches what reads them
                    self.note(name)
                self.space.touch(name)
                return None
            else:
                pins = self.shim.pinning.pin(frozenset(state.closure) - {name})
                try:
                    with self.shim.pinning.reading(pins):
                        opened = self._runtime.opened(name, chain)
                finally:
                    pins.release()
                if opened.expansion is not None:
                    return opened

    def hold(self, name: str, flags: int = os.O_RDONLY, contracted: bool = False) -> int | None:
        """A descriptor of a file whose bytes stay until :meth:`release`; None when they are not there.

        :param contracted: whether it may be contracted
        """
        file = self._folder.open(name, flags)
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        self.tracker.file(os.fstat(file).st_ino).hold(writes)
        with self.files.mutex:
            raw = read_stored(file)
        if raw is not None and StoredState.decode(raw).contracted and not contracted:
            self.release(file, writes)
            return None
        return file

    def release(self, file: int, writes: bool = False) -> None:
        """Close what was held; what was written is settled."""
        self.tracker.file(os.fstat(file).st_ino).release(file, writes)
        os.close(file)

    def expand(self, name: str) -> None:
        """Make the bytes of an item, and wait until they are in their place.

        :raises ExpansionError: when they cannot be made, or stored
        """
        opened = self.open(name)
        if opened is not None:
            try:
                self.wait(opened)
            finally:
                opened.close()

    def wait(self, opened: Opened) -> None:
        """Until an expansion has ended.

        :raises ExpansionError: when it fails
        """
        if opened.expansion is not None:
            opened.expansion.stream.wait()
            self._runtime.wait(opened)

    @contextlib.contextmanager
    def changing(self, names: Sequence[str], moved: bool = False) -> Iterator[None]:
        """While it is entered, a client writes, deletes or moves files.

        :param moved: whether they go on to exist under another name
        :raises Conflict: when an item that needs one of them cannot be expanded
        """
        for name in names:
            for item in self.index.readers(name) if moved else ():
                try:
                    self.expand(item)
                except (ExpansionError, NotFound) as error:
                    raise Conflict(f"`{name}` is needed by `{item}`, which cannot be expanded: {error}") from error
        with contextlib.ExitStack() as stack:
            for name in names:
                if self._dependents.find(name):
                    stack.enter_context(self._runtime.changing(name))
            yield

    # Motifs

    def attach(self, name: str, text: str, user: int) -> None:
        """Attach a motif, given as a JSON object with ``template`` and ``params``.

        :raises CallerError: when it cannot be attached, and why
        """
        try:
            described = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallerError("the motif is no JSON") from error
        match described:
            case {"template": str(template), **others} if not others.keys() - {"params"}:
                params = others.get("params", {})
            case _:
                raise CallerError("expected a JSON object with `template` and `params`")
        if not isinstance(params, dict):
            raise CallerError("`params` is no JSON object")
        motif = self._runtime.create_motif(template, params, str(user))
        found = self._folder.stat(name)
        if found is not None and found.st_nlink > 1:
            raise CallerError(f"`{name}` has {found.st_nlink} hard links, expected one")
        for source in internal_sources(motif, name, self._templates):
            try:
                if self._folder.stat(source, user) is None:
                    raise NotFound(f"source `{source}` does not exist")
            except ExpansionError as error:
                raise Forbidden(f"{error}") from error
        self._runtime.attach_motif(name, motif)
        self.note(name)

    def detach(self, name: str) -> None:
        """Detach all motifs, whose item is expanded before.

        :raises NotFound: when it has none
        """
        motifs = self.motifs(name)
        if not motifs:
            raise NotFound(f"`{name}` has no motif")
        self.expand(name)
        for motif in motifs:
            self._runtime.detach_motif(name, motif)
        self.note(name)

    def contract(self, name: str, verify: str = HEAD) -> str:
        """As ``Runtime.contract``."""
        outcome = self._runtime.contract(name, verify)
        self.note(name)
        return outcome

    def motifs(self, name: str) -> Sequence[Motif]:
        """The motifs of a file."""
        view = self.files.look(name)
        return () if view is None else view.record.motifs

    def unlink(self, name: str) -> None:
        """A client deletes a file; enter :meth:`changing` before."""
        with self.files.mutex:
            found = os.lstat(name)
            os.unlink(name)
            if found.st_nlink == 1:
                self.files.sizes.pop(found.st_ino, None)
        self.forget(name)

    def rename(self, name: str, to: str) -> None:
        """A client gives another name to a file or folder, in the place of what has that name.

        Items in it keep their motifs.  Items that read what is in it are expanded before, since they find it no more.

        :raises Conflict: when one of these cannot be expanded
        """
        moved = self.index.sources_below(name)
        items = self.index.items_below(name)
        overwritten = [to] if to in self.index.sources else []
        with self.changing(moved, moved=True), self.changing(overwritten):
            os.rename(name, to)
        self.forget(to)
        for item in items:
            self.forget(item)
            self.note(to + item.removeprefix(name))

    def note(self, name: str) -> None:
        """Something may have become of a file."""
        try:
            view = self.files.look(name)
        except PeerError:
            return
        if view is None or not view.record.motifs:
            self.forget(name)
        else:
            self._note_view(view)

    def forget(self, name: str) -> None:
        """It is no item any more, or gone."""
        self.index.remove(name)
        self.space.remove(name)
        self._runtime.notify_delete(name)

    def _note_view(self, view: ItemView) -> None:
        sources = sources_by_name(view.record.motifs, view.name, self._templates)
        self.index.put(view.name, view.opaque[0], sources)
        self.space.put(view.name, view.plain.size, not view.contracted)

    def _replace(self, name: str, file: int) -> None:
        self.note(name)
        self.replaced(name, file)

    def _written(self, name: str) -> bool:
        found = self._folder.stat(name)
        tracked = None if found is None else self.tracker.find(found.st_ino)
        return tracked is not None and tracked.written

    def _front_door(self, name: str, chain: tuple[str, ...]) -> Iterator[bytes]:
        while True:
            opened = self.open(name, chain)
            if opened is not None:
                try:
                    yield from opened.read()
                finally:
                    opened.close()
                return
            file = self.hold(name)
            if file is not None:
                break
        try:
            position = 0
            while piece := os.pread(file, 256 << 10, position):
                position += len(piece)
                yield piece
        finally:
            self.release(file)


class _PinningRuntime(Runtime):
    """A runtime all of whose expansions pin their sources; tells the folder what became of items."""

    def __init__(self, owner: MotifFiles) -> None:
        around = Surroundings(spawn=owner.shim.pinning.spawn)
        super().__init__(owner.shim, LocalLeases(), owner._dependents, owner._templates, around=around)
        self._owner = owner

    def opened(self, name: str, chain: tuple[str, ...]) -> Opened:
        """As ``notify_open`` of the runtime."""
        return super().notify_open(name, chain)

    def wait(self, opened: Opened) -> None:
        """Until an expansion has ended."""
        if opened.expansion is not None:
            self._openings.active.wait(opened.expansion)

    def expand(self, name: str) -> None:
        self._owner.expand(name)

    def expanded(self, view: ItemView, motif: Motif, seconds: float) -> None:
        super().expanded(view, motif, seconds)
        self._owner.note(view.name)

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        super().detached(view, motifs, sources)
        self._owner.note(view.name)
