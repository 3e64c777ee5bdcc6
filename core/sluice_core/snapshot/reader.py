"""The snapshot of a node's assignments: written by its agent, read by every Swift worker and by the konnector.

Each request calls a reader.  It makes no network call, takes no lock, and raises nothing: without a usable snapshot it
finds no policy, and ``problem`` has the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lmdb

from sluice_core.describe import OBJECTS, VOLUMES
from sluice_core.errors import DecodeError
from sluice_core.messages.uploads import Upload
from sluice_core.resolve import Candidates
from sluice_core.snapshot import lmdb_adapter
from sluice_core.snapshot.candidates import MOST, NOTHING, CandidateCache
from sluice_core.snapshot.keys import (
    SNAPSHOT_META_KEY,
    SNAPSHOT_UPLOADS_KEY,
    snapshot_account_prefixes,
    snapshot_key,
    snapshot_keys,
    snapshot_object_prefixes,
    snapshot_placement_key,
    snapshot_volume_keys,
)
from sluice_core.snapshot.lmdb_adapter import SnapshotError, boot_id, current_generation, lmdb_errors, read_value
from sluice_core.snapshot.records import STAMP, Meta, decode_record
from sluice_core.snapshot.writer import SnapshotWriter
from sluice_core.store.records import Head

__all__ = ["SnapshotError", "SnapshotReader", "SnapshotWriter"]


class SnapshotReader:
    """Finds the assignments that may apply to an object or a volume, in the snapshot that an agent keeps in ``folder``.

    The constructor opens nothing.  Call :meth:`refresh` once after the fork and then each second:
    only this method opens a snapshot, or notices a replaced one.
    """

    def __init__(self, folder: str | Path, boot: str | None = None) -> None:
        self._folder = Path(folder)
        self._boot = boot
        self._process = 0
        self._path: Path | None = None
        self._environment: Any = None
        self._objects = CandidateCache(OBJECTS, self._complain)
        self._volumes = CandidateCache(VOLUMES, self._complain)
        self._cache = self._objects.by_stamps
        #: Number of the last transaction that was read.
        self._number = -1
        #: Accounts without any record in that transaction → the answer for all of their objects.
        self._quiet: dict[str, Candidates] = {}
        #: Of the other accounts: containers without records of objects → the answer for each object in them.
        self._settled: dict[tuple[str, str], Candidates] = {}
        #: Accounts and containers in neither mapping.
        self._named: set[str | tuple[str, str]] = set()
        self._flawed_at: int | None = None
        self._uploads_stamp = b""
        #: The link to the generation in use, its target, and the last transaction at the last :meth:`refresh`.
        self._link = os.path.join(folder, lmdb_adapter.CURRENT)
        self._seen: tuple[str, int] | None = None
        #: The filters registered at run time, renewed by :meth:`refresh`; another tuple after a change.
        self.uploads: tuple[Upload, ...] = ()
        #: Id of the generation in use; empty when there is none.
        self.snapshot_id = ""
        #: The reason why policies are not (all) found; empty when there is no problem.
        self.problem = f"no snapshot of `{folder}` opened yet"

    def find(self, account: str, container: str = "", obj: str = "") -> Candidates:
        """Return every assignment that may apply to the object; does not raise."""
        if self._environment is None or self._process != os.getpid():
            return NOTHING
        try:
            try:
                transaction = self._environment.begin(buffers=True)
            except lmdb.MapResizedError:
                self._environment.set_mapsize(0)  # the writer's map grew
                transaction = self._environment.begin(buffers=True)
            candidates = None
            if transaction.id() == self._number:
                candidates = self._quiet.get(account) or self._settled.get((account, container))
            if candidates is None:
                candidates = self._look_up(transaction, account, container, obj)
            transaction.abort()  # after an exception its destructor aborts it
            return candidates
        except lmdb.Error as error:
            self._complain(f"cannot be read: {error}", -1)
            return NOTHING

    def find_volume(self, account: str, volume: str) -> Candidates:
        """Return every assignment that may apply to the volume; does not raise.  Without changes, the answer is the
        same object.

        Sentences about volumes do not depend on requests, so ``constant`` of the answer holds the assignments in force.

        :param volume: its id in Cinder
        """
        if self._environment is None or self._process != os.getpid():
            return NOTHING
        keys = snapshot_volume_keys(account, volume)

        def work(transaction: Any) -> Candidates:
            raw = [transaction.get(key) for key in keys]
            stamps = tuple(None if one is None else bytes(one[:STAMP]) for one in raw)
            found = self._volumes.by_stamps.get(stamps)
            return self._volumes.prepare(stamps, raw, transaction.get) if found is None else found

        try:
            return lmdb_adapter.read_transaction(self._environment, work)
        except lmdb.Error as error:
            self._complain(f"cannot be read: {error}", -1)
            return NOTHING

    def placement(self, account: str) -> str:
        """The storage policy of new containers of ``account``; empty when none is set; does not raise."""
        if self._environment is None or self._process != os.getpid():
            return ""
        try:
            return read_value(self._environment, snapshot_placement_key(account)).decode()
        except (lmdb.Error, UnicodeDecodeError) as error:
            self._complain(f"placement: {error}", -1)
            return ""

    def position(self) -> Head:
        """History and epoch of the snapshot; empty when no snapshot is readable."""
        meta = None if self._process != os.getpid() else self._meta()
        return Head() if meta is None else Head(meta.history, meta.epoch)

    def refresh(self) -> None:
        """Open the snapshot when there is a new one; the open one stays when the new one cannot be opened."""
        seen = self._look()
        if seen is not None and seen == self._seen:
            return  # nothing was written, as in most seconds
        self._seen = None
        try:
            if self._boot is None:
                self._boot = boot_id()
            path = current_generation(self._folder, self._boot)
            if path != self._path or self._process != os.getpid():
                self._open(path)
                seen = None  # it belongs to the generation before
            elif self._flawed_at is not None:
                self._look_again()
            elif self.problem:
                self.problem = ""
            self._read_uploads()
            self._seen = seen
        except SnapshotError as error:
            self.problem = str(error)

    def close(self) -> None:
        """Close the snapshot."""
        if self._path is not None:
            lmdb_adapter.release(self._path)
        self._path, self._environment, self.snapshot_id = None, None, ""
        self._forget()

    # -- how --------------------------------------------------------------------------------

    def _look(self) -> tuple[str, int] | None:
        """Return the current generation and the last transaction in the open one; None if a full check is needed."""
        if self._environment is None or self._process != os.getpid() or self.problem:
            return None
        try:
            transaction = self._environment.begin()
            number = transaction.id()
            transaction.abort()
            return os.readlink(self._link), number
        except (OSError, lmdb.Error):
            return None

    def _look_up(self, transaction: Any, account: str, container: str, obj: str) -> Candidates:
        """Look up a container that has records of objects, or that was not looked up since the snapshot was written."""
        if transaction.id() != self._number or len(self._quiet) + len(self._settled) + len(self._named) >= MOST:
            self._number = transaction.id()
            self._unlearn()
        candidates = self._read(transaction, snapshot_keys(account, container, obj))
        if account not in self._named:
            self._learn(transaction, account)
        if account in self._named and (account, container) not in self._named:
            if _has_any(transaction, snapshot_object_prefixes(account, container)):
                self._named.add((account, container))
            else:
                self._settled[account, container] = candidates
        return candidates

    def _read(self, transaction: Any, keys: tuple[bytes, bytes, bytes, bytes]) -> Candidates:
        """Read four records; their candidates are prepared once."""
        get = transaction.get
        obj, container, tenant, everything = raw = (get(keys[0]), get(keys[1]), get(keys[2]), get(keys[3]))
        stamps = (
            None if obj is None else bytes(obj[:STAMP]),
            None if container is None else bytes(container[:STAMP]),
            None if tenant is None else bytes(tenant[:STAMP]),
            None if everything is None else bytes(everything[:STAMP]),
        )
        candidates = self._cache.get(stamps)
        if candidates is None:
            if len(self._cache) >= MOST:  # other answers are dropped with it, and made again
                self._unlearn()
            candidates = self._objects.prepare(stamps, raw, get)
        return candidates

    def _learn(self, transaction: Any, account: str) -> None:
        """Record whether the snapshot has any record of ``account`` or below it."""
        if _is_named(transaction, account):
            self._named.add(account)
        else:
            self._quiet[account] = self._read(transaction, snapshot_keys(account, "", ""))

    def _unlearn(self) -> None:
        """Read everything again."""
        self._quiet.clear()
        self._settled.clear()
        self._named.clear()

    def _forget(self) -> None:
        self._objects.clear()
        self._volumes.clear()
        self._unlearn()

    def _complain(self, text: str, stamp: int) -> None:
        self.problem = f"snapshot in `{self._folder}`: {text}"
        self._flawed_at = max(stamp, self._flawed_at or 0)

    def _look_again(self) -> None:
        """Record that a read failed; the problem is cleared once the agent has written again."""
        meta = self._meta()
        if meta is not None and self._flawed_at is not None and meta.serial > self._flawed_at:
            self._flawed_at, self.problem = None, ""
            self._forget()

    def _read_uploads(self) -> None:
        """Read the uploads after a change; those in use stay when the new ones cannot be read."""
        try:
            raw = read_value(self._environment, SNAPSHOT_UPLOADS_KEY)
            if raw[:STAMP] != self._uploads_stamp:
                self.uploads = tuple(map(Upload.from_data, decode_record(raw))) if raw else ()
                self._uploads_stamp = raw[:STAMP]
        except (lmdb.Error, DecodeError) as error:
            self._complain(f"uploads: {error}", -1)

    def _open(self, path: Path) -> None:
        environment = lmdb_adapter.open_environment(path)
        try:
            with lmdb_errors(path):
                meta = Meta.decode(read_value(environment, SNAPSHOT_META_KEY))
        except (SnapshotError, DecodeError) as error:
            lmdb_adapter.release(path)
            raise SnapshotError(f"snapshot `{path}`: {error}") from error
        self.close()
        self._path, self._environment, self._process = path, environment, os.getpid()
        self._flawed_at, self.snapshot_id, self.problem = None, meta.id, ""
        self._uploads_stamp = b"of another snapshot"

    def _meta(self) -> Meta | None:
        if self._environment is None:
            return None
        try:
            return Meta.decode(read_value(self._environment, SNAPSHOT_META_KEY))
        except (lmdb.Error, DecodeError) as error:
            self.problem = f"snapshot in `{self._folder}`: {error}"
            return None


def _is_named(transaction: Any, account: str) -> bool:
    """Whether there may be a record of ``account``, or of a container or an object in it."""
    named = transaction.get(snapshot_key("tenant", account)) is not None
    return named or _has_any(transaction, snapshot_account_prefixes(account))


def _has_any(transaction: Any, prefixes: Iterable[bytes]) -> bool:
    """Whether some key begins with one of the prefixes."""
    with transaction.cursor() as cursor:
        return any(cursor.set_range(prefix) and bytes(cursor.key()).startswith(prefix) for prefix in prefixes)
