"""The records of a snapshot, as bytes.

* A *record* holds all assignments filed under one key: a stamp of eight bytes that changes with
  every writing, then MessagePack.  Readers compare stamps and decode only what is new to them.
* The *index* says of each assignment's id where it is filed; one that this node refuses is kept
  there whole, with the reason, until a worker arrives that can do it.
* A group's assignments are one record of the group's own.  The record of each member holds a *reference*
  to it beside its assignments.  See ``sluice_core.snapshot.registry``.
* The filters registered at run time are one record, whose members are uploads rather than assignments.
* *Meta* is the snapshot's id, and the history and epoch that it stands at; *last change* the digest of that change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import CONTAINER, GROUP, OBJECT, TENANT, VOLUME, Assignment
from sluice_core.snapshot.keys import (
    EVERYTHING_KEY,
    SNAPSHOT_INDEX_PREFIX,
    SNAPSHOT_META_KEY,
    SNAPSHOT_PLACEMENT_PREFIX,
    SNAPSHOT_REGISTRY_KEY,
    snapshot_group_key,
    snapshot_key,
)

FORMAT: Final = 1
STAMP: Final = 8
_NAMED: Final = (TENANT, CONTAINER, OBJECT, VOLUME)
#: What else is in a snapshot, without stamps.
_PLAIN_PREFIXES: Final = (SNAPSHOT_INDEX_PREFIX, SNAPSHOT_PLACEMENT_PREFIX)
_PLAIN_KEYS: Final = (SNAPSHOT_META_KEY, SNAPSHOT_REGISTRY_KEY)


@dataclass(frozen=True, slots=True)
class Meta:
    """Where a snapshot stands; ``serial`` is the stamp last given."""

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

        :raises DecodeError: when it is none, or of another format
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
    """The digest of the change that a snapshot stands at; of no use beside a meta record of another position.

    Older agents, which may have written to the snapshot since, move only the meta record.
    """

    history: str
    epoch: int
    digest: str

    def encode(self) -> bytes:
        """Bytes for its record; none when the digest is not known."""
        packed: bytes = msgpack.packb([self.history, self.epoch, self.digest]) if self.digest else b""
        return packed

    @classmethod
    def read_digest(cls, raw: bytes | memoryview | None, meta: Meta) -> str:
        """The digest in ``raw`` of the change that ``meta`` names; empty when it holds none."""
        try:
            last = cls(*msgpack.unpackb(raw or b""))
        except (ValueError, TypeError, msgpack.UnpackException):
            return ""
        return last.digest if (last.history, last.epoch) == (meta.history, meta.epoch) else ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An index entry: the record's key; or nothing, and what is refused and why.

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

        :raises DecodeError: when it is none
        """
        try:
            return cls(*msgpack.unpackb(raw))
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise DecodeError(f"not an entry of the snapshot's index: {error}", bytes(raw)) from error


def record_key(assignment: Assignment) -> bytes:
    """The record that ``assignment`` is filed in: its named target's, its group's, else that of everything."""
    path, level = assignment.path(), assignment.target.level
    if path and level in _NAMED:
        return snapshot_key(level, path)
    if assignment.target.select == GROUP:
        return snapshot_group_key(level, assignment.target.name)
    return EVERYTHING_KEY


def is_record(key: bytes) -> bool:
    """True for the key of a record, which has a stamp."""
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

    :raises DecodeError: when it is none
    """
    try:
        members: list[dict[str, Any]] = msgpack.unpackb(raw[STAMP:])
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DecodeError(f"not a record of the snapshot: {error}", bytes(raw)) from error
    return members
