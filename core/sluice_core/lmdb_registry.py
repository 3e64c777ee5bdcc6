"""What a snapshot keeps of the registry: who is in which group, and where new containers go.

Groups are not expanded.  A group's assignments stand in a record of the group's own, and the record of
each member holds a *reference* to it, so that

* a member that comes or goes is one record written, however many assignments the group has;
* an assignment that comes or goes is one record written, however many members the group has;
* who is in no group never reads more than before.

A reader follows references only when it prepares an answer that it has not cached.  The answer is cached
by the stamps of the four records of a request, and a group's record is none of them.  So whoever writes a
group's record writes the record of everything too, which gives that another stamp: **the record of
everything exists whenever a group's record does**, though it may be empty.

A group that is not known (yet) is a group without members: its assignments are filed, and concern nobody
until it comes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError
from sluice_core.keys import snapshot_group_key, snapshot_key
from sluice_core.messages import CONTAINER, TENANT, Entry
from sluice_core.registry import CONTAINER_GROUP, GROUP, PLACEMENT, Group, Placement

log = logging.getLogger(__name__)

#: Which kinds are kept, and how.  Whoever keeps more of the registry must change it.
KEPT: Final = b"1"
#: Kind of a group → level of its members.
GROUP_LEVELS: Final[Mapping[str, str]] = {GROUP: TENANT, CONTAINER_GROUP: CONTAINER}

Reference = dict[str, Any]


def reference(level: str, name: str) -> Reference:
    """What a member's record says of a group; its id is none that an assignment has."""
    return {"id": f"\0{level}/{name}", "group": snapshot_group_key(level, name)}


def referred(data: Mapping[str, Any]) -> bytes | None:
    """The key of the group's record when ``data`` of a record is a reference; None for an assignment."""
    return data.get("group")


def member_keys(level: str, members: Iterable[str]) -> set[bytes]:
    """The records of a group's members."""
    return {snapshot_key(level, path) for path in members}


def members_of(entry: Entry | None) -> list[str]:
    """Who is in a group, sorted; nobody when there is none, or an entry that makes no sense, which is logged."""
    if entry is None:
        return []
    try:
        members = list(dict.fromkeys(sorted(Group.read(entry).members)))
        "\0".join(members).encode()
    except (DecodeError, UnicodeEncodeError) as error:
        log.error("group `%s` is taken as empty: %s", entry.name, error)
        return []
    return members


def storage_policy_of(entry: Entry | None) -> str:
    """The storage policy that a placement names; empty as for :func:`members_of`."""
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
    """The two parts of what an entry is filed under."""
    kind, _, name = key.partition("/")
    return kind, name


def is_kept(key: str) -> bool:
    """True for the ``kind/name`` of entries that nodes care for."""
    kind, name = kind_and_name(key)
    return (kind in GROUP_LEVELS or kind == PLACEMENT) and _encodable(name)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        log.error("an entry of the registry is left out: %s", error)
        return False
    return True


def encode_paths(members: list[str]) -> bytes:
    """Who is in a group, sorted, as bytes."""
    packed: bytes = msgpack.packb(members)
    return packed


def decode_paths(raw: bytes | None) -> frozenset[str]:
    """Of :func:`encode_paths`; nobody when there is nothing.

    :raises DecodeError: when it is something else
    """
    if raw is None:
        return frozenset()
    try:
        return frozenset(msgpack.unpackb(raw))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DecodeError(f"not the members of a group: {error}", bytes(raw)) from error
