"""The writing side of a snapshot: one per node, in the agent.

Every method is one transaction: readers see all of it or nothing, and a writer that is killed has changed nothing.
After a :class:`SnapshotError` the last good state stays, for the writer and for readers.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Assignment, Change, Entry
from sluice_core.messages.uploads import Upload
from sluice_core.snapshot import lmdb_adapter
from sluice_core.snapshot.keys import SNAPSHOT_INDEX_PREFIX, SNAPSHOT_UPLOADS_KEY
from sluice_core.snapshot.lmdb_adapter import SnapshotError, lmdb_errors
from sluice_core.snapshot.records import IndexEntry, LastChange, Meta, decode_record, is_record, referenced_group
from sluice_core.snapshot.transaction import (
    Judge,
    SnapshotContents,
    SnapshotEdit,
    accept_all,
    fill,
    make_equal,
    read_summary,
)
from sluice_core.store.records import FullState, Head

T = TypeVar("T")


class SnapshotWriter:
    """Keeps the snapshot in ``folder``; ``group`` is the Unix group of the readers' lock file, if given.

    A *judge* returns the reason why this node refuses an assignment, or an empty string; refused assignments are not
    shown to readers, but kept for :meth:`rejudge`.
    """

    def __init__(self, folder: str | Path, boot: str | None = None, group: str = "") -> None:
        self.folder = Path(folder)
        self._boot = boot
        self._group = group
        self._path: Path | None = None
        self._environment: Any = None
        self._claimed: int | None = None
        self._meta = Meta("")
        #: Assignments that readers see.
        self.count = 0
        #: True when an agent that kept less of the registry wrote it: :meth:`reload` corrects that.
        self.incomplete = False
        #: Assignment id → why this node refuses it.
        self.refused: dict[str, str] = {}
        #: The reason why :meth:`open` could not use the snapshot.
        self.problem = ""
        #: Digest of the change at :attr:`position` when it was opened; empty when it is not known.
        self.last_digest = ""

    @property
    def snapshot_id(self) -> str:
        """Id of the generation in use; empty when there is none."""
        return self._meta.id

    @property
    def position(self) -> Head:
        """History and epoch of the snapshot."""
        return Head(self._meta.history, self._meta.epoch)

    def open(self) -> Head:
        """Open the existing snapshot; return an empty head, and set ``problem``, when no snapshot is usable.

        :raises SnapshotError: when the folder cannot be made
        """
        with lmdb_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o755)
            if self._claimed is None:
                self._claimed = lmdb_adapter.claim_folder(self.folder)
        try:
            path = lmdb_adapter.current_generation(self.folder, self._boot_id())
            self._enter(path, lmdb_adapter.open_environment(path, write=True))
        except (SnapshotError, DecodeError) as error:
            self._leave()
            self.problem = str(error)
        lmdb_adapter.remove_old_generations(self.folder)
        return self.position

    def apply(self, changes: Sequence[Change], judge: Judge = accept_all) -> None:
        """Apply ``changes``, which follow one another."""
        if not changes:
            return
        puts: dict[str, Assignment | None] = {}
        uploads: dict[str, Upload | None] = {}
        entries: dict[str, Entry | None] = {}
        for change in changes:
            puts.update(dict.fromkeys(change.drops))
            puts.update((one.id, one) for one in change.puts)
            uploads.update(dict.fromkeys(change.upload_drops))
            uploads.update((one.key, one) for one in change.uploads)
            entries.update(dict.fromkeys(change.entry_drops))
            entries.update((one.key, one) for one in change.entries)
        last = changes[-1]
        meta = replace(self._meta, history=last.history, epoch=last.epoch)
        self._edit(puts, judge, meta, uploads, entries, LastChange(last.history, last.epoch, last.digest))

    def rejudge(self, judge: Judge) -> int:
        """Call ``judge`` again for all assignments; return how many became accepted or refused."""
        changed: dict[str, Assignment | None] = {}
        for one in self.assignments():
            if judge(one) != self.refused.get(one.id, ""):
                changed[one.id] = one
        if changed:
            self._edit(changed, judge, self._meta)
        return len(changed)

    def reload(self, loaded: FullState, judge: Judge = accept_all) -> bool:
        """Make the snapshot equal to ``loaded``; return True when readers must open a new generation.

        A usable snapshot is changed in place, only where it differs; else a new one is built beside it and replaces it.
        """
        contents = SnapshotContents(loaded, judge)
        replaced = self._environment is None
        if replaced:
            self._build(contents, Meta(uuid.uuid4().hex, loaded.history, loaded.epoch))
        else:
            meta = replace(self._meta, history=loaded.history, epoch=loaded.epoch)
            self._meta = self._write(lambda transaction: make_equal(transaction, contents.entries, meta))
        self.count, self.refused, self.incomplete = contents.grown, contents.refused, False
        return replaced

    def assignments(self) -> list[Assignment]:
        """All assignments, also the refused ones that could be decoded."""
        documents: list[dict[str, Any]] = []

        def work(transaction: Any) -> None:
            for key, raw in transaction.cursor():
                key = bytes(key)
                if key.startswith(SNAPSHOT_INDEX_PREFIX):
                    filed = IndexEntry.decode(raw)
                    documents.extend([filed.data] if filed.data is not None else [])
                elif is_record(key) and key != SNAPSHOT_UPLOADS_KEY:
                    documents.extend(one for one in decode_record(raw) if referenced_group(one) is None)

        if self._environment is not None:
            lmdb_adapter.read_transaction(self._environment, work)
        return [Assignment.from_data(one) for one in documents]

    def uploads(self) -> list[Upload]:
        """The filters registered at run time."""
        if self._environment is None:
            return []
        raw = lmdb_adapter.read_value(self._environment, SNAPSHOT_UPLOADS_KEY)
        return [Upload.from_data(one) for one in decode_record(raw)] if raw else []

    def reader_check(self) -> int:
        """Free the slots of killed readers, whose old transactions would fill the map; return their number."""
        if self._environment is None:
            return 0
        with lmdb_errors(self.folder):
            freed: int = self._environment.reader_check()
            return freed

    def close(self) -> None:
        """Close the snapshot; it stays for readers."""
        self._leave()
        if self._claimed is not None:
            os.close(self._claimed)
            self._claimed = None

    # -- how --------------------------------------------------------------------------------

    def _leave(self) -> None:
        if self._path is not None:
            lmdb_adapter.release(self._path)
        self._path, self._environment, self._meta, self.count, self.refused = None, None, Meta(""), 0, {}
        self.incomplete, self.last_digest = False, ""

    def _boot_id(self) -> str:
        return lmdb_adapter.boot_id() if self._boot is None else self._boot

    def _enter(self, path: Path, environment: Any) -> None:
        """Use an open environment from now on."""
        self._path, self._environment = path, environment
        with lmdb_errors(path):
            found = lmdb_adapter.read_transaction(environment, read_summary)
        self._meta, self.last_digest, self.incomplete, self.count, self.refused = found
        self.problem = ""

    def _edit(
        self,
        wanted: Mapping[str, Assignment | None],
        judge: Judge,
        meta: Meta,
        uploads: Mapping[str, Upload | None] | None = None,
        entries: Mapping[str, Entry | None] | None = None,
        last: LastChange | None = None,
    ) -> None:
        """Put (or, where None, drop) the assignments in ``wanted``, the ``uploads`` and ``entries``."""
        judged = {name: "" if one is None else judge(one) for name, one in wanted.items()}

        def work(transaction: Any) -> SnapshotEdit:
            edit = SnapshotEdit(transaction, meta.serial)
            for name, assignment in wanted.items():
                edit.drop(name)
                if assignment is not None:
                    edit.put(assignment, judged[name])
            for keyword, upload in (uploads or {}).items():
                edit.register(keyword, upload)
            for key, entry in (entries or {}).items():
                edit.learn(key, entry)
            if last is not None:
                edit.remember(last)
            edit.finish(meta)
            return edit

        done = self._write(work)
        self._meta = replace(meta, serial=done.serial)
        self.count += done.grown
        for name in wanted:
            self.refused.pop(name, None)
        self.refused.update((name, reason) for name, reason in judged.items() if reason)

    def _write(self, work: Callable[[Any], T]) -> T:
        """Run one transaction; repeat it on a larger map when the map is full."""
        if self._environment is None or self._path is None:
            raise SnapshotError(f"no snapshot in `{self.folder}` to change")
        try:
            return lmdb_adapter.write_transaction(self._path, self._environment, work)
        except DecodeError as error:
            self._leave()
            self.problem = f"snapshot in `{self.folder}`: {error}"
            raise SnapshotError(self.problem) from error
        except SnapshotError:
            # LMDB may refuse all work after a failed write until it is opened again
            self._leave()
            self.open()
            raise

    def _build(self, contents: SnapshotContents, meta: Meta) -> None:
        """Write a new generation beside the old one, then rename it to the current one."""
        path = lmdb_adapter.next_generation(self.folder, self._boot_id())
        try:
            environment = lmdb_adapter.open_environment(path, write=True)
            lmdb_adapter.open_to_readers(path, self._group)
            self._meta = lmdb_adapter.write_transaction(
                path, environment, lambda transaction: fill(transaction, contents.entries, meta)
            )
            lmdb_adapter.make_current(path)
        except SnapshotError:
            lmdb_adapter.release(path)
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._path, self._environment, self.problem = path, environment, ""
        lmdb_adapter.remove_old_generations(self.folder)
