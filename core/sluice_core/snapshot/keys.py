"""Every key of the LMDB snapshot, each with its reason."""

from __future__ import annotations

import hashlib
from typing import Final

#: LMDB refuses keys of more than 511 bytes; Swift's names are longer, so long ones are hashed.
_LMDB_KEY_LIMIT: Final = 500
#: Follows the prefix of a hashed key.
_HASHED: Final = b"#"
_PREFIXES: Final = {"tenant": b"t/", "container": b"c/", "object": b"o/", "volume": b"v/"}
#: Snapshot record of all assignments that do not name one target.
EVERYTHING_KEY: Final = b"*"
#: Prefix of the snapshot's index, assignment id → key of its record.
SNAPSHOT_INDEX_PREFIX: Final = b"i/"
#: Prefix of the snapshot's records of groups' assignments; members' own records name the groups to read.
SNAPSHOT_GROUP_PREFIX: Final = b"g/"
#: Prefix of the storage policies of accounts' new containers.
SNAPSHOT_PLACEMENT_PREFIX: Final = b"p/"
#: Snapshot record of the last applied change.  It has a prefix that older agents delete when they load the whole
#: snapshot, and no account has a name with a NUL.
SNAPSHOT_LAST_CHANGE_KEY: Final = SNAPSHOT_PLACEMENT_PREFIX + b"\x00last change"
#: Snapshot record of the parts of the registry in the snapshot, from which a newer agent decides whether to load again.
SNAPSHOT_REGISTRY_KEY: Final = b"\x00registry"
#: Snapshot record of the filters registered at run time.
SNAPSHOT_UPLOADS_KEY: Final = b"\x00uploads"
#: Snapshot record of its id, history and epoch.
SNAPSHOT_META_KEY: Final = b"\x00meta"


def snapshot_key(level: str, path: str) -> bytes:
    """Snapshot key of ``path`` (``account[/container[/object]]``, or ``account/volume id``) at ``level``."""
    return _fitted(_PREFIXES[level] + path.encode("utf-8", "surrogateescape"))


def snapshot_keys(account: str, container: str, obj: str) -> tuple[bytes, bytes, bytes, bytes]:
    """The keys of all records that may concern one object, narrowest first; made on each request."""
    longest = f"o/{account}/{container}/{obj}".encode("utf-8", "surrogateescape")
    if len(longest) > _LMDB_KEY_LIMIT:
        path = f"{account}/{container}"
        return (
            snapshot_key("object", f"{path}/{obj}"),
            snapshot_key("container", path),
            snapshot_key("tenant", account),
            EVERYTHING_KEY,
        )
    return (
        longest,
        f"c/{account}/{container}".encode("utf-8", "surrogateescape"),
        f"t/{account}".encode("utf-8", "surrogateescape"),
        EVERYTHING_KEY,
    )


def snapshot_volume_keys(account: str, volume: str) -> tuple[bytes, bytes, bytes]:
    """The keys of all records that may concern one volume, narrowest first."""
    return snapshot_key("volume", f"{account}/{volume}"), snapshot_key("tenant", account), EVERYTHING_KEY


def snapshot_account_prefixes(account: str) -> tuple[bytes, ...]:
    """Key prefixes of all containers and objects of ``account``; hashed keys may belong to any account."""
    name = account.encode("utf-8", "surrogateescape")[:_LMDB_KEY_LIMIT]
    return (b"c/" + name + b"/", b"o/" + name + b"/", b"c/" + _HASHED, b"o/" + _HASHED)


def snapshot_object_prefixes(account: str, container: str) -> tuple[bytes, ...]:
    """Key prefixes of all objects of a container; hashed keys may belong to any container."""
    name = f"o/{account}/{container}/".encode("utf-8", "surrogateescape")
    return (b"o/" + _HASHED,) if len(name) > _LMDB_KEY_LIMIT else (name, b"o/" + _HASHED)


def snapshot_index_key(assignment: str) -> bytes:
    """Snapshot key of the index entry of an assignment, by which a drop finds its record."""
    return _fitted(SNAPSHOT_INDEX_PREFIX + assignment.encode("utf-8", "surrogateescape"))


def snapshot_group_key(level: str, name: str) -> bytes:
    """Snapshot key of the assignments of the group ``name`` of tenants, containers or volumes."""
    return _fitted(SNAPSHOT_GROUP_PREFIX + f"{level}/{name}".encode("utf-8", "surrogateescape"))


def snapshot_placement_key(account: str) -> bytes:
    """Snapshot key of the storage policy of the account's new containers."""
    return _fitted(SNAPSHOT_PLACEMENT_PREFIX + account.encode("utf-8", "surrogateescape"))


def _fitted(raw: bytes) -> bytes:
    if len(raw) <= _LMDB_KEY_LIMIT:
        return raw
    return raw[:2] + _HASHED + hashlib.blake2b(raw, digest_size=32).digest()
