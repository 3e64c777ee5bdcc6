"""Operations of a mount's clients on the files of its folder, and on their motifs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_motif_control.messages import SpaceStatus
from sluice_motifs.api import ExpansionError
from sluice_motifs.dependencies.freshness import Templates, copies_of, internal_sources
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.controller import SpaceController
from sluice_motifs.space.keeper import SHARE, SpaceConfig
from sluice_motifs.space.one_space import PATH, OneSpace
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif
from sluice_motifs_fs.file_runtime import FileRuntime, ItemIndex
from sluice_motifs_fs.storage.paths import SourceFolder
from sluice_motifs_fs.storage.shim import FileShim
from sluice_motifs_fs.storage.stored_files import StoredFiles
from sluice_motifs_fs.storage.tracking import FileTracker

#: The parts of a space report that a mount shows.
_REPORTED: Final = (
    *("state", "reason", "used", "contracted", "items", "contracted_items", "hits", "misses", "hit_rate"),
    *("expansions", "seconds_lost", "expansions_per_second", "expansion_time"),
)


class MountSpace(SpaceController):
    """All items of a mount, kept at a target size that may change; :meth:`start` and :meth:`stop` it.

    :param in_use: whether an item is open
    :param target: bytes of expanded items; None: no limit
    :param policy: keyword of the replacement policy that chooses the items to contract
    :param share: of all seconds, that re-expansions may take: as of ``ThrashingGuard``
    :raises CallerError: for an unknown policy, or a negative target
    """

    def __init__(
        self, runtime: Runtime, in_use: Callable[[str], bool], target: int | None, policy: str, share: float
    ) -> None:
        self._rules = OneSpace(target, policy)
        super().__init__(runtime, self._rules, LocalLeases(), "", SpaceConfig(in_use=in_use, share=share))

    def describe(self) -> str:
        """The state of the space, as a JSON object."""
        found = self.statuses.get(PATH) or SpaceStatus(PATH, "", 0, 0, 0)
        kept: dict[str, Any] = {"target": self._rules.target, "policy": self._rules.policy}
        return json.dumps(kept | {field: getattr(found, field) for field in _REPORTED})

    def change(self, text: str) -> None:
        """Change its rules, given as a JSON object with ``target_size``, null for none, ``policy``, or both.

        :raises CallerError: when the object or a value is invalid
        """
        try:
            described = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallerError("the space is no JSON") from error
        if not isinstance(described, dict) or described.keys() - {"target_size", "policy"}:
            raise CallerError("expected a JSON object with `target_size`, `policy`, or both")
        target = described.get("target_size", self._rules.target)
        policy = described.get("policy", self._rules.policy)
        if not (target is None or type(target) is int):
            raise CallerError(f"`target_size` is `{target}`, expected bytes, or null for no target")
        self._rules.change(target, f"{policy}")
        self._events.put(self.step)


class MotifFiles:
    """Items of one folder; :meth:`start` and :meth:`stop` it.  All methods may block.

    :param target: bytes of expanded items; None: no limit
    :param policy: keyword of the replacement policy that chooses the items to contract
    :param share: of all seconds, that re-expansions may take: as of ``ThrashingGuard``
    """

    def __init__(
        self,
        folder: SourceFolder,
        templates: Templates,
        target: int | None = None,
        policy: str = "lru",
        share: float = SHARE,
    ) -> None:
        self.index = ItemIndex()
        self.tracker = FileTracker()
        self.files = StoredFiles(folder, self.tracker)
        self.shim = FileShim(self.files, folder, self.tracker, self._front_door, self._replace)
        #: called with an item that another file replaced, and a descriptor of the old one
        self.replaced: Callable[[str, int], None] = lambda name, file: None
        self._folder = folder
        self._templates = templates
        self.runtime = FileRuntime(self.shim, self.files, templates, self.index)
        self.space = MountSpace(self.runtime, self._in_use, target, policy, share)

    def start(self) -> int:
        """Remove the leftovers of a killed process and start; return the number of items.

        :raises PeerError: when the file system has no extended attributes, or cannot be written
        """
        copies: set[str] = set()
        for view in self.files.recover():
            self.runtime.note_view(view)
            copies.update(copies_of(view.record.motifs, view.name, self._templates))
        if not self.files.unread:
            self.shim.copies.keep_only(copies)
        count = self.runtime.restart()
        self.space.start()
        return count

    def stop(self) -> None:
        """Stop contractions and refills."""
        self.space.stop()

    # What clients do

    def hold(self, name: str, flags: int = os.O_RDONLY, contracted: bool = False) -> int | None:
        """Return a descriptor of a file whose bytes stay until :meth:`release`; None when it has none.

        :param contracted: whether it may be contracted
        """
        file = self._folder.open(name, flags)
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        self.tracker.file(os.fstat(file).st_ino).hold(writes)
        if self.files.contracted(file) and not contracted:
            self.release(file, writes)
            return None
        return file

    def release(self, file: int, writes: bool = False) -> None:
        """Close a held file; written bytes are settled."""
        self.tracker.file(os.fstat(file).st_ino).release(file, writes)
        os.close(file)

    def _expand_readers(self, names: Sequence[str]) -> None:
        """Expand the items that read files which are going to be renamed.

        :raises Conflict: when one of them cannot be expanded
        """
        for name in names:
            for item in self.index.readers(name):
                try:
                    self.runtime.expand(item)
                except (ExpansionError, NotFound) as error:
                    raise Conflict(f"`{name}` is needed by `{item}`, which cannot be expanded: {error}") from error

    # Motifs

    def attach(self, name: str, text: str, user: int) -> None:
        """Attach a motif, given as a JSON object with ``template`` and ``params``.

        :raises CallerError: when it cannot be attached; says why
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
        motif = self.runtime.create_motif(template, params, str(user))
        found = self._folder.stat(name)
        if found is not None and found.st_nlink > 1:
            raise CallerError(f"`{name}` has {found.st_nlink} hard links, expected one")
        for source in internal_sources(motif, name, self._templates):
            try:
                if self._folder.stat(source, user) is None:
                    raise NotFound(f"source `{source}` does not exist")
            except ExpansionError as error:
                raise Forbidden(f"{error}") from error
        self.runtime.attach_motif(name, motif)

    def detach(self, name: str) -> None:
        """Detach all motifs of an item, after expanding it.

        :raises NotFound: when it has none
        """
        motifs = self.motifs(name)
        if not motifs:
            raise NotFound(f"`{name}` has no motif")
        self.runtime.expand(name)
        for motif in motifs:
            self.runtime.detach_motif(name, motif)
        self.runtime.note(name)

    def motifs(self, name: str) -> Sequence[Motif]:
        """The motifs of a file."""
        view = self.files.find(name)
        return () if view is None else view.record.motifs

    def unlink(self, name: str) -> None:
        """Delete a file for a client."""
        with self.files.mutex:
            status = os.lstat(name)
            os.unlink(name)
            if status.st_nlink == 1:
                self.files.sizes.remove(status.st_ino)
        self.runtime.forget(name)

    def rename(self, name: str, to: str) -> None:
        """Rename a file or folder for a client, replacing the target.

        Items in it keep their motifs.  Items that read files in it are expanded before, since their sources' names
        change.

        :raises Conflict: when one of these cannot be expanded
        """
        items = self.index.items_below(name)
        self._expand_readers(self.index.sources_below(name))
        os.rename(name, to)
        self.runtime.forget(to)
        for item in items:
            self.runtime.forget(item)
            self.runtime.note(to + item.removeprefix(name))

    def _in_use(self, name: str) -> bool:
        inode = self.index.items.get(name)
        tracked = None if inode is None else self.tracker.find(inode)
        return tracked is not None and tracked.used

    def _replace(self, name: str, file: int) -> None:
        self.runtime.note(name)
        self.replaced(name, file)

    def _front_door(self, name: str, chain: tuple[str, ...]) -> Iterator[bytes]:
        while True:
            opened = self.runtime.open(name, chain)
            if opened is not None:
                try:
                    yield from opened.read()
                finally:
                    opened.close()
                return
            pins = self.shim.pinning.pin(frozenset({name}))  # a client may write it meanwhile
            try:
                if name in pins.found:
                    yield from pins.found[name].read()
                    return
            finally:
                pins.release()
