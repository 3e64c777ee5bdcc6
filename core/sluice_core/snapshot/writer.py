"""The writing side of a snapshot: one per node, in the agent.

Every method is one transaction: readers see all of it or nothing, and a writer killed in the middle
has done nothing.  After a :class:`SnapshotError` the last good state stands, here and for readers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Assignment, Change, Entry
from sluice_core.messages.uploads import Upload
from sluice_core.snapshot import lmdb_adapter
from sluice_core.snapshot.keys import (
    SNAPSHOT_INDEX_PREFIX,
    SNAPSHOT_META_KEY,
    SNAPSHOT_REGISTRY_KEY,
    SNAPSHOT_UPLOADS_KEY,
)
from sluice_core.snapshot.lmdb_adapter import (
    CURRENT,
    LOCK_MODE,
    SnapshotError,
    boot_id,
    current_generation,
    lmdb_errors,
    read_transaction,
    read_value,
)
from sluice_core.snapshot.records import IndexEntry, Meta, decode_record, is_record
from sluice_core.snapshot.registry import REGISTRY_FORMAT, referenced_group
from sluice_core.snapshot.transaction import Judge, SnapshotContents, SnapshotEdit, fill, make_equal
from sluice_core.store.records import FullState, Head

T = TypeVar("T")


def accept_all(assignment: Assignment) -> str:
    """A judge that refuses nothing."""
    return ""


class SnapshotWriter:
    """Keeps the snapshot in ``folder``; ``group`` may give the readers' lock file to a Unix group.

    A *judge* answers why this node refuses an assignment, or an empty string; what is refused is
    not shown to readers, but kept for :meth:`rejudge`.
    """

    def __init__(self, folder: str | Path, boot: str | None = None, group: str = "") -> None:
        self.folder = Path(folder)
        self._boot = boot
        self._group = group
        self._path: Path | None = None
        self._environment: Any = None
        self._claimed: int | None = None
        self._meta = Meta("")
        self._count = 0
        #: True when it was written by an agent that kept less of the registry: :meth:`reload` mends it.
        self.incomplete = False
        #: Assignment id → why this node refuses it.
        self.refused: dict[str, str] = {}
        #: Why the snapshot found by :meth:`open` could not be used.
        self.problem = ""

    @property
    def snapshot_id(self) -> str:
        """Id of the generation in use; empty when there is none."""
        return self._meta.id

    @property
    def position(self) -> Head:
        """History and epoch that the snapshot stands at."""
        return Head(self._meta.history, self._meta.epoch)

    @property
    def count(self) -> int:
        """Assignments that readers see."""
        return self._count

    def open(self) -> Head:
        """Take up the snapshot that is there; an empty head, and ``problem``, when there is none to use.

        :raises SnapshotError: when the folder cannot be made
        """
        with lmdb_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o755)
            self._claim()
        try:
            path = current_generation(self.folder, self._boot_id())
            self._enter(path, lmdb_adapter.open_environment(path, write=True))
        except (SnapshotError, DecodeError) as error:
            self._leave()
            self.problem = str(error)
        self._sweep()
        return self.position

    def apply(self, changes: Sequence[Change], judge: Judge = accept_all) -> None:
        """Bring the snapshot to the last of ``changes``, which follow one another."""
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
        self._edit(puts, judge, replace(self._meta, history=last.history, epoch=last.epoch), uploads, entries)

    def rejudge(self, judge: Judge) -> int:
        """Ask ``judge`` again about everything; how many assignments moved in or out."""
        changed: dict[str, Assignment | None] = {}
        for one in self.assignments():
            if judge(one) != self.refused.get(one.id, ""):
                changed[one.id] = one
        if changed:
            self._edit(changed, judge, self._meta)
        return len(changed)

    def reload(self, loaded: FullState, judge: Judge = accept_all) -> bool:
        """Make the snapshot equal to ``loaded``; True when readers must open a new generation.

        A sound snapshot is changed in place, only where it differs; else a new one is built beside
        it and takes its name.
        """
        contents = SnapshotContents(loaded, judge)
        replaced = self._environment is None
        if replaced:
            self._build(contents, Meta(uuid.uuid4().hex, loaded.history, loaded.epoch))
        else:
            meta = replace(self._meta, history=loaded.history, epoch=loaded.epoch)
            self._meta = self._write(lambda transaction: make_equal(transaction, contents.entries, meta))
        self._count, self.refused, self.incomplete = contents.grown, contents.refused, False
        return replaced

    def assignments(self) -> list[Assignment]:
        """All assignments, also the refused ones that could be decoded."""
        found: list[dict[str, Any]] = []

        def work(transaction: Any) -> None:
            for key, raw in transaction.cursor():
                key = bytes(key)
                if key.startswith(SNAPSHOT_INDEX_PREFIX):
                    filed = IndexEntry.decode(raw)
                    found.extend([filed.data] if filed.data is not None else [])
                elif is_record(key) and key != SNAPSHOT_UPLOADS_KEY:
                    found.extend(one for one in decode_record(raw) if referenced_group(one) is None)

        if self._environment is not None:
            read_transaction(self._environment, work)
        return [Assignment.from_data(one) for one in found]

    def uploads(self) -> list[Upload]:
        """The filters registered at run time."""
        if self._environment is None:
            return []
        raw = read_value(self._environment, SNAPSHOT_UPLOADS_KEY)
        return [Upload.from_data(one) for one in decode_record(raw)] if raw else []

    def reader_check(self) -> int:
        """Free the slots of killed readers, whose old transactions would fill the map; how many."""
        if self._environment is None:
            return 0
        with lmdb_errors(self.folder):
            freed: int = self._environment.reader_check()
            return freed

    def close(self) -> None:
        """Let the snapshot go; it stays for readers."""
        self._leave()
        if self._claimed is not None:
            os.close(self._claimed)
            self._claimed = None

    # -- how --------------------------------------------------------------------------------

    def _claim(self) -> None:
        """One writer per folder: a lock that ends with the process."""
        if self._claimed is not None:
            return
        lock = os.open(self.folder / ".writer", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise SnapshotError(f"snapshot folder `{self.folder}` belongs to another running agent") from error
        self._claimed = lock

    def _leave(self) -> None:
        if self._path is not None:
            lmdb_adapter.release(self._path)
        self._path, self._environment, self._meta, self._count, self.refused = None, None, Meta(""), 0, {}
        self.incomplete = False

    def _boot_id(self) -> str:
        return boot_id() if self._boot is None else self._boot

    def _enter(self, path: Path, environment: Any) -> None:
        """Work on an open environment from now on."""
        self._path, self._environment = path, environment

        def work(transaction: Any) -> tuple[Meta, bool, int, dict[str, str]]:
            incomplete = transaction.get(SNAPSHOT_REGISTRY_KEY) != REGISTRY_FORMAT
            meta = Meta.decode(transaction.get(SNAPSHOT_META_KEY))
            counted, refused = 0, {}
            with transaction.cursor() as cursor:
                cursor.set_range(SNAPSHOT_INDEX_PREFIX)
                for key, raw in cursor:
                    if not bytes(key).startswith(SNAPSHOT_INDEX_PREFIX):
                        break
                    filed = IndexEntry.decode(raw)
                    counted += not filed.refused
                    if filed.refused:
                        refused[filed.name] = filed.refused
            return meta, incomplete, counted, refused

        with lmdb_errors(path):
            self._meta, self.incomplete, self._count, self.refused = read_transaction(environment, work)
        self.problem = ""

    def _edit(
        self,
        wanted: Mapping[str, Assignment | None],
        judge: Judge,
        meta: Meta,
        uploads: Mapping[str, Upload | None] | None = None,
        entries: Mapping[str, Entry | None] | None = None,
    ) -> None:
        """Put (or, where None, drop) the assignments in ``wanted``, the ``uploads`` and ``entries``."""
        judged = {name: "" if one is None else judge(one) for name, one in wanted.items()}

        def work(transaction: Any) -> SnapshotEdit:
            edit = SnapshotEdit(transaction, meta.serial)
            for name, one in wanted.items():
                edit.drop(name)
                if one is not None:
                    edit.put(one, judged[name])
            for keyword, upload in (uploads or {}).items():
                edit.register(keyword, upload)
            for key, entry in (entries or {}).items():
                edit.learn(key, entry)
            edit.finish(meta)
            return edit

        done = self._write(work)
        self._meta = replace(meta, serial=done.serial)
        self._count += done.grown
        for name in wanted:
            self.refused.pop(name, None)
        self.refused.update((name, reason) for name, reason in judged.items() if reason)

    def _write(self, work: Callable[[Any], T]) -> T:
        """One transaction, begun anew on a larger map when the map is full."""
        if self._environment is None or self._path is None:
            raise SnapshotError(f"no snapshot in `{self.folder}` to change")
        try:
            return _transact(self._path, self._environment, work)
        except DecodeError as error:
            self._leave()
            self.problem = f"snapshot in `{self.folder}`: {error}"
            raise SnapshotError(self.problem) from error
        except SnapshotError:
            # LMDB may refuse everything after a failed write until it is opened again
            self._leave()
            self.open()
            raise

    def _build(self, contents: SnapshotContents, meta: Meta) -> None:
        """A new generation beside the old one, then the rename that makes it the current one."""
        path = self.folder / f"gen-{self._next_number()}-{self._boot_id()}"
        environment = lmdb_adapter.open_environment(path, write=True)
        try:
            with lmdb_errors(path):
                path.chmod(0o755)
                (path / "data.mdb").chmod(0o644)
                (path / "lock.mdb").chmod(LOCK_MODE)
                if self._group:
                    shutil.chown(path / "lock.mdb", group=self._group)
            self._meta = _transact(path, environment, lambda transaction: fill(transaction, contents.entries, meta))
            with lmdb_errors(path):
                link = self.folder / f".{CURRENT}"
                link.unlink(missing_ok=True)
                link.symlink_to(path.name)
                link.replace(self.folder / CURRENT)
        except SnapshotError:
            lmdb_adapter.release(path)
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._path, self._environment, self.problem = path, environment, ""
        self._sweep()

    def _next_number(self) -> int:
        words = (path.name.split("-")[1] for path in self.folder.glob("gen-*-*"))
        numbers = [int(word) for word in words if word.isdecimal()]
        return max(numbers, default=0) + 1

    def _sweep(self) -> None:
        """Remove what is not current; readers that have it open keep what they mapped."""
        with contextlib.suppress(OSError):
            current = os.readlink(self.folder / CURRENT)
            for path in self.folder.glob("gen-*"):
                if path.name != current:
                    shutil.rmtree(path, ignore_errors=True)


def _transact(path: Path, environment: Any, work: Callable[[Any], T]) -> T:
    with lmdb_errors(path):
        while True:
            try:
                with environment.begin(write=True) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                environment.set_mapsize(environment.info()["map_size"] * 2)
