"""The records of a snapshot, as bytes.

* A *record* holds all assignments under one key: a stamp of eight bytes that changes with
  every write, then MessagePack.  Readers compare stamps and decode only new records.
* The *index* maps each assignment's id to the key of its record; an assignment that this node refuses is kept whole in
  the index, with the reason, until a worker starts that can enforce it.
* A group's assignments are one record of the group's own.  The record of each member holds a *reference*
  to it beside its assignments.
* The filters registered at run time are one record, whose members are uploads, not assignments.
* *Meta* is the snapshot's id, and its history and epoch; *last change* the digest of that change.

Groups are not expanded, so that

* a member that is added or removed is one record written, however many assignments the group has;
* an assignment that is added or removed is one record written, however many members the group has;
* a target in no group reads no more records than before.

A reader follows references only when it prepares an answer that it has not cached.  The answer is cached
by the stamps of the four records of a request, and a group's record is not among them.  So a writer of a
group's record also writes the record of everything, which gives it another stamp: **the record of
everything exists whenever a group's record does**, though it may be empty.

An unknown group is a group without members: its assignments are stored, and apply to no target until a member is added.
Only the entries of members define a group's members; a node ignores the entry of the group itself.  Of the registry a
snapshot has members of groups, and the storage policies of accounts' new containers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import CONTAINER, GROUP, OBJECT, TENANT, VOLUME, Assignment, Entry
from sluice_core.messages.registry import GROUP_KINDS, PLACEMENT, Placement
from sluice_core.snapshot.keys import (
    EVERYTHING_KEY,
    SNAPSHOT_INDEX_PREFIX,
    SNAPSHOT_META_KEY,
    SNAPSHOT_PLACEMENT_PREFIX,
    SNAPSHOT_REGISTRY_KEY,
    snapshot_group_key,
    snapshot_key,
)

log = logging.getLogger(__name__)

FORMAT: Final = 1
STAMP: Final = 8
_NAMED: Final = (TENANT, CONTAINER, OBJECT, VOLUME)
#: The other values of a snapshot, without stamps.
_PLAIN_PREFIXES: Final = (SNAPSHOT_INDEX_PREFIX, SNAPSHOT_PLACEMENT_PREFIX)
_PLAIN_KEYS: Final = (SNAPSHOT_META_KEY, SNAPSHOT_REGISTRY_KEY)


@dataclass(frozen=True, slots=True)
class Meta:
    """The position of a snapshot; ``serial`` is the last stamp."""

    id: str
    history: str = ""
    epoch: int = 0
    serial: int = 0

    def encode(self) -> bytes:
        """Bytes for the meta record."""
        packed: bytes = msgpack.packb([FORMAT, self.id, self.history, self.epoch, self.serial])
        return packed

    @classmethod
    def decode(cls, raw: bytes | memoryview | None) -> Meta:
        """The meta record in ``raw``.

        :raises DecodeError: when it is not a meta record, or of another format
        """
        try:
            version, *rest = msgpack.unpackb(raw or b"")
            if version != FORMAT:
                raise ValueError(f"format `{version}`, expected {FORMAT}")
            return cls(*rest)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise DecodeError(f"not a snapshot: {error}", bytes(raw or b"")) from error


@dataclass(frozen=True, slots=True)
class LastChange:
    """The digest of the last change in a snapshot; invalid beside a meta record of another position.

    Older agents, which may have written to the snapshot since, update only the meta record.
    """

    history: str
    epoch: int
    digest: str

    def encode(self) -> bytes:
        """Bytes for its record; empty when the digest is not known."""
        packed: bytes = msgpack.packb([self.history, self.epoch, self.digest]) if self.digest else b""
        return packed

    @classmethod
    def read_digest(cls, raw: bytes | memoryview | None, meta: Meta) -> str:
        """Return the digest in ``raw`` of the change that ``meta`` names; empty when it holds another."""
        try:
            last = cls(*msgpack.unpackb(raw or b""))
        except (ValueError, TypeError, msgpack.UnpackException):
            return ""
        return last.digest if (last.history, last.epoch) == (meta.history, meta.epoch) else ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An index entry: the record's key; or, without one, the refused assignment and the reason.

    ``data`` is None for a refused assignment that cannot even be decoded.
    """

    key: bytes
    name: str = ""
    refused: str = ""
    data: dict[str, Any] | None = None

    def encode(self) -> bytes:
        """Bytes for the index."""
        parts = [self.key] if self.key else [self.key, self.name, self.refused, self.data]
        packed: bytes = msgpack.packb(parts)
        return packed

    @classmethod
    def decode(cls, raw: bytes | memoryview) -> IndexEntry:
        """The index entry in ``raw``.

        :raises DecodeError: when it is not one
        """
        try:
            return cls(*msgpack.unpackb(raw))
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise DecodeError(f"not an entry of the snapshot's index: {error}", bytes(raw)) from error


def record_key(assignment: Assignment) -> bytes:
    """Return the key of the record of ``assignment``: its named target's, its group's, else that of everything."""
    path, level = assignment.path(), assignment.target.level
    if path and level in _NAMED:
        return snapshot_key(level, path)
    if assignment.target.select == GROUP:
        return snapshot_group_key(level, assignment.target.name)
    return EVERYTHING_KEY


def is_record(key: bytes) -> bool:
    """Whether ``key`` is that of a record, which has a stamp."""
    return not key.startswith(_PLAIN_PREFIXES) and key not in _PLAIN_KEYS


def encode_members(members: Mapping[str, dict[str, Any]]) -> bytes:
    """A record without its stamp: the assignments' data, by id, so that equal ones have equal bytes."""
    packed: bytes = msgpack.packb([members[name] for name in sorted(members)])
    return packed


def encode_record(serial: int, payload: bytes) -> bytes:
    """A record."""
    return serial.to_bytes(STAMP, "big") + payload


def decode_record(raw: bytes | memoryview) -> list[dict[str, Any]]:
    """The assignments' data in a record.

    :raises DecodeError: when it is not a record
    """
    try:
        members: list[dict[str, Any]] = msgpack.unpackb(raw[STAMP:])
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DecodeError(f"not a record of the snapshot: {error}", bytes(raw)) from error
    return members


#: The kinds of entries in the snapshot, and their format.  A version that keeps more of the registry must change it.
REGISTRY_FORMAT: Final = b"3"
#: Kind of a group's members → their level.
MEMBER_LEVELS: Final[Mapping[str, str]] = {kinds.member: level for level, kinds in GROUP_KINDS.items()}

Reference = dict[str, Any]


def reference(level: str, name: str) -> Reference:
    """The reference to a group in a member's record; no assignment has such an id."""
    return {"id": f"\0{level}/{name}", "group": snapshot_group_key(level, name)}


def referenced_group(data: Mapping[str, Any]) -> bytes | None:
    """The key of the group's record when ``data`` of a record is a reference; None for an assignment."""
    return data.get("group")


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of the target with the record ``record`` in a group of ``level``."""

    level: str
    group: str
    record: bytes


def membership(key: str) -> Membership | None:
    """Return the membership in the ``kind/name`` of an entry; None for another entry."""
    kind, name = kind_and_name(key)
    level = MEMBER_LEVELS.get(kind)
    if level is None:
        return None
    group, _, path = name.partition("/")
    return Membership(level, group, snapshot_key(level, path))


def storage_policy_of(entry: Entry | None) -> str:
    """Return the storage policy that a placement names; empty without one, or when it is invalid, which is logged."""
    if entry is None:
        return ""
    try:
        name = Placement.read(entry).storage_policy
        if not isinstance(name, str):
            raise DecodeError(f"storage policy is `{name!r}`, expected a text")
        name.encode()
    except (DecodeError, UnicodeEncodeError) as error:
        log.error("placement of account `%s` is left out: %s", entry.name, error)
        return ""
    return name


def kind_and_name(key: str) -> tuple[str, str]:
    """The two parts of an entry's key."""
    kind, _, name = key.partition("/")
    return kind, name


def is_kept(key: str) -> bool:
    """Whether nodes keep entries with this ``kind/name``."""
    kind, name = kind_and_name(key)
    return (kind in MEMBER_LEVELS or kind == PLACEMENT) and _encodable(name)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        log.error("an entry of the registry is left out: %s", error)
        return False
    return True
