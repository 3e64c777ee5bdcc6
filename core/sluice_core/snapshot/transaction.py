"""Changes within one transaction of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any

from sluice_core.messages.policies import Assignment, Entry
from sluice_core.messages.uploads import FILTER_CODE, Upload, upload_key
from sluice_core.snapshot.keys import (
    EVERYTHING_KEY,
    SNAPSHOT_GROUP_PREFIX,
    SNAPSHOT_INDEX_PREFIX,
    SNAPSHOT_LAST_CHANGE_KEY,
    SNAPSHOT_META_KEY,
    SNAPSHOT_REGISTRY_KEY,
    SNAPSHOT_UPLOADS_KEY,
    snapshot_index_key,
    snapshot_placement_key,
)
from sluice_core.snapshot.records import (
    REGISTRY_FORMAT,
    STAMP,
    IndexEntry,
    LastChange,
    Meta,
    decode_record,
    encode_members,
    encode_record,
    is_kept,
    is_record,
    kind_and_name,
    membership,
    record_key,
    reference,
    storage_policy_of,
)
from sluice_core.store.records import FullState

Judge = Callable[[Assignment], str]
Members = dict[str, dict[str, Any]]
NameOf = Callable[[dict[str, Any]], str]


def accept_all(assignment: Assignment) -> str:
    """A judge that accepts every assignment."""
    return ""


class _Records:
    """Assignments, uploads and registry entries as records; a subclass stores them."""

    def __init__(self) -> None:
        self._records: dict[bytes, Members] = {}
        #: The change of the number of assignments that readers see.
        self.grown = 0

    def put(self, assignment: Assignment, refused: str) -> None:
        """Store a new assignment, or keep it aside as refused."""
        data = assignment.to_data()
        if refused:
            filed = IndexEntry(b"", assignment.id, refused, data)
        else:
            filed = IndexEntry(record_key(assignment))
            self._members(filed.key)[assignment.id] = data
            self.grown += 1
        self._keep(snapshot_index_key(assignment.id), filed.encode())

    def register(self, key: str, upload: Upload | None) -> None:
        """Store an upload under its ``Upload.key``; None deletes it."""
        members = self._members(SNAPSHOT_UPLOADS_KEY, _key_of_upload)
        members.pop(key, None)
        if upload is not None:
            members[key] = upload.to_data()

    def learn(self, key: str, entry: Entry | None) -> None:
        """Apply the registry entry ``key``; None deletes it."""
        if not is_kept(key):
            return
        member = membership(key)
        if member is None:
            self._keep(snapshot_placement_key(kind_and_name(key)[1]), storage_policy_of(entry).encode())
            return
        mark = reference(member.level, member.group)
        if entry is not None:
            self._members(member.record)[mark["id"]] = mark
        else:
            self._members(member.record).pop(mark["id"], None)

    def _touches_groups(self) -> bool:
        return any(key.startswith(SNAPSHOT_GROUP_PREFIX) for key in self._records)

    def _members(self, key: bytes, name_of: NameOf = itemgetter("id")) -> Members:
        """The members of a record by name; changes of them are kept."""
        return self._records.setdefault(key, {})

    def _keep(self, key: bytes, value: bytes) -> None:
        """Store the value of a key that is not a record; store nothing when ``value`` is empty."""
        raise NotImplementedError


class SnapshotEdit(_Records):
    """Changes to some records within one transaction; each record is read and written once."""

    def __init__(self, transaction: Any, serial: int) -> None:
        super().__init__()
        self._transaction = transaction
        self.serial = serial

    def drop(self, name: str) -> None:
        """Remove an assignment, if it exists."""
        raw = self._transaction.pop(snapshot_index_key(name))
        if raw is None:
            return
        key = IndexEntry.decode(raw).key
        if key and self._members(key).pop(name, None) is not None:
            self.grown -= 1

    def remember(self, last: LastChange) -> None:
        """Store the last change of the snapshot."""
        self._keep(SNAPSHOT_LAST_CHANGE_KEY, last.encode())

    def finish(self, meta: Meta) -> None:
        """Write the records and the position of the snapshot."""
        if self._touches_groups():
            self._members(EVERYTHING_KEY)  # written too, so that readers notice
        everything = self._records.pop(EVERYTHING_KEY, None)
        for key, members in self._records.items():
            self._write(key, members, bool(members))
        if everything is not None:
            self._write(EVERYTHING_KEY, everything, bool(everything) or self._has_groups())
        self._transaction.put(SNAPSHOT_META_KEY, replace(meta, serial=self.serial).encode())

    def _keep(self, key: bytes, value: bytes) -> None:
        if value:
            self._transaction.put(key, value)
        else:
            self._transaction.delete(key)

    def _write(self, key: bytes, members: Members, there: bool) -> None:
        if there:
            self.serial += 1
        self._keep(key, encode_record(self.serial, encode_members(members)) if there else b"")

    def _has_groups(self) -> bool:
        with self._transaction.cursor() as cursor:
            return bool(cursor.set_range(SNAPSHOT_GROUP_PREFIX)) and cursor.key().startswith(SNAPSHOT_GROUP_PREFIX)

    def _members(self, key: bytes, name_of: NameOf = itemgetter("id")) -> Members:
        if key not in self._records:
            raw = self._transaction.get(key)
            self._records[key] = {} if raw is None else {name_of(one): one for one in decode_record(raw)}
        return self._records[key]


class SnapshotContents(_Records):
    """The contents of a whole snapshot: ``entries`` are index entries and records without their stamps."""

    def __init__(self, loaded: FullState, judge: Judge) -> None:
        super().__init__()
        self.refused = dict(loaded.broken)
        self.entries: dict[bytes, bytes] = {SNAPSHOT_REGISTRY_KEY: REGISTRY_FORMAT}
        self._keep(SNAPSHOT_LAST_CHANGE_KEY, LastChange(loaded.history, loaded.epoch, loaded.digest).encode())
        for name, reason in loaded.broken.items():
            self._keep(snapshot_index_key(name), IndexEntry(b"", name, reason).encode())
        for assignment in loaded.assignments:
            reason = judge(assignment)
            if reason:
                self.refused[assignment.id] = reason
            self.put(assignment, reason)
        for entry in loaded.entries:
            self.learn(entry.key, entry)
        for upload in loaded.uploads:
            self.register(upload.key, upload)
        if self._touches_groups():
            self._members(EVERYTHING_KEY)
        self.entries.update((key, encode_members(members)) for key, members in self._records.items())

    def _keep(self, key: bytes, value: bytes) -> None:
        if value:
            self.entries[key] = value


def _key_of_upload(data: Mapping[str, Any]) -> str:
    return upload_key(data.get("kind", FILTER_CODE), data["keyword"])


def read_summary(transaction: Any) -> tuple[Meta, str, bool, int, dict[str, str]]:
    """Return the position of a snapshot, the digest of that change, whether it keeps less of the registry than this
    version, the number of assignments that readers see, and the reasons why the others are refused.

    :raises DecodeError: when it is not a snapshot
    """
    meta = Meta.decode(transaction.get(SNAPSHOT_META_KEY))
    count, refused = 0, {}
    with transaction.cursor() as cursor:
        cursor.set_range(SNAPSHOT_INDEX_PREFIX)
        for key, raw in cursor:
            if not bytes(key).startswith(SNAPSHOT_INDEX_PREFIX):
                break
            filed = IndexEntry.decode(raw)
            count += not filed.refused
            if filed.refused:
                refused[filed.name] = filed.refused
    digest = LastChange.read_digest(transaction.get(SNAPSHOT_LAST_CHANGE_KEY), meta)
    return meta, digest, transaction.get(SNAPSHOT_REGISTRY_KEY) != REGISTRY_FORMAT, count, refused


def fill(transaction: Any, entries: Mapping[bytes, bytes], meta: Meta) -> Meta:
    """Write everything into an empty environment, in LMDB's order, which is fastest."""
    transaction.put(SNAPSHOT_META_KEY, meta.encode())
    return _write_entries(transaction, sorted(entries.items()), meta)


def make_equal(transaction: Any, entries: Mapping[bytes, bytes], meta: Meta) -> Meta:
    """Write and delete only what differs."""
    same: set[bytes] = set()
    gone: list[bytes] = []
    for key, raw in transaction.cursor():
        if key == SNAPSHOT_META_KEY:
            continue
        wanted = entries.get(key)
        if wanted is None:
            gone.append(key)
        elif wanted == (raw[STAMP:] if is_record(key) else raw):
            same.add(key)
    for key in gone:
        transaction.delete(key)
    if any(key.startswith(SNAPSHOT_GROUP_PREFIX) for key in chain(gone, entries.keys() - same)):
        same.discard(EVERYTHING_KEY)
    return _write_entries(transaction, [pair for pair in entries.items() if pair[0] not in same], meta)


def _write_entries(transaction: Any, entries: Sequence[tuple[bytes, bytes]], meta: Meta) -> Meta:
    serial = meta.serial
    for key, value in entries:
        if is_record(key):
            serial += 1
            transaction.put(key, encode_record(serial, value))
        else:
            transaction.put(key, value)
    meta = replace(meta, serial=serial)
    transaction.put(SNAPSHOT_META_KEY, meta.encode())
    return meta
