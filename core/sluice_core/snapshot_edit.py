"""What a writer does within one transaction of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sluice_core.keys import SNAPSHOT_INDEX_PREFIX, SNAPSHOT_META_KEY, SNAPSHOT_UPLOADS_KEY, snapshot_index_key
from sluice_core.lmdb_records import STAMP, Filed, Meta, decode_record, encode_members, key_of, stamped
from sluice_core.messages import Assignment, Upload
from sluice_core.operations import Loaded

Judge = Callable[[Assignment], str]
Members = dict[str, dict[str, Any]]


class Edit:
    """Changes to some records within one transaction; each record is read and written once."""

    def __init__(self, transaction: Any, serial: int) -> None:
        self._transaction = transaction
        self._records: dict[bytes, Members] = {}
        self.serial = serial
        #: How many more assignments readers see.
        self.grown = 0

    def drop(self, name: str) -> None:
        """Forget an assignment, if it is there."""
        raw = self._transaction.pop(snapshot_index_key(name))
        if raw is None:
            return
        key = Filed.decode(raw).key
        if key and self._members(key).pop(name, None) is not None:
            self.grown -= 1

    def put(self, assignment: Assignment, refused: str) -> None:
        """File an assignment that is not there, or keep it aside as refused."""
        data = assignment.to_data()
        if refused:
            filed = Filed(b"", assignment.id, refused, data)
        else:
            filed = Filed(key_of(assignment))
            self._members(filed.key)[assignment.id] = data
            self.grown += 1
        self._transaction.put(snapshot_index_key(assignment.id), filed.encode())

    def register(self, keyword: str, upload: Upload | None) -> None:
        """Put a filter registered at run time, or, where None, forget it."""
        members = self._members(SNAPSHOT_UPLOADS_KEY, "keyword")
        members.pop(keyword, None)
        if upload is not None:
            members[keyword] = upload.to_data()

    def finish(self, meta: Meta) -> None:
        """Write the records and where the snapshot stands now."""
        for key, members in self._records.items():
            if members:
                self.serial += 1
                self._transaction.put(key, stamped(self.serial, encode_members(members)))
            else:
                self._transaction.delete(key)
        self._transaction.put(SNAPSHOT_META_KEY, replace(meta, serial=self.serial).encode())

    def _members(self, key: bytes, name: str = "id") -> Members:
        found = self._records.get(key)
        if found is None:
            raw = self._transaction.get(key)
            found = {} if raw is None else {one[name]: one for one in decode_record(raw)}
            self._records[key] = found
        return found


class Contents:
    """What a whole snapshot holds: ``entries`` are index entries and records without their stamps."""

    def __init__(self, loaded: Loaded, judge: Judge) -> None:
        self.refused = dict(loaded.broken)
        self.entries: dict[bytes, bytes] = {
            snapshot_index_key(name): Filed(b"", name, reason).encode() for name, reason in loaded.broken.items()
        }
        records: dict[bytes, Members] = {}
        for one in loaded.assignments:
            reason, data = judge(one), one.to_data()
            if reason:
                self.refused[one.id] = reason
                filed = Filed(b"", one.id, reason, data)
            else:
                filed = Filed(key_of(one))
                records.setdefault(filed.key, {})[one.id] = data
            self.entries[snapshot_index_key(one.id)] = filed.encode()
        self.count = len(loaded.assignments) + len(loaded.broken) - len(self.refused)
        self.entries.update((key, encode_members(members)) for key, members in records.items())
        if loaded.uploads:
            uploads = {one.keyword: one.to_data() for one in loaded.uploads}
            self.entries[SNAPSHOT_UPLOADS_KEY] = encode_members(uploads)


def _is_record(key: bytes) -> bool:
    return not key.startswith(SNAPSHOT_INDEX_PREFIX) and key != SNAPSHOT_META_KEY


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
        elif wanted == (raw[STAMP:] if _is_record(key) else raw):
            same.add(key)
    for key in gone:
        transaction.delete(key)
    return _write_entries(transaction, [pair for pair in entries.items() if pair[0] not in same], meta)


def _write_entries(transaction: Any, entries: Sequence[tuple[bytes, bytes]], meta: Meta) -> Meta:
    serial = meta.serial
    for key, value in entries:
        if _is_record(key):
            serial += 1
            transaction.put(key, stamped(serial, value))
        else:
            transaction.put(key, value)
    meta = replace(meta, serial=serial)
    transaction.put(SNAPSHOT_META_KEY, meta.encode())
    return meta
