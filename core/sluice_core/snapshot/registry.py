"""The parts of the registry in a snapshot: members of groups, and storage policies of new containers.

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
until somebody comes.  Who is in a group is said by the entries of its members alone, one by one; that of the
group itself means nothing to a node.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Entry
from sluice_core.messages.registry import GROUP_KINDS, PLACEMENT, Placement
from sluice_core.snapshot.keys import snapshot_group_key, snapshot_key

log = logging.getLogger(__name__)

#: Which kinds are kept, and how.  Whoever keeps more of the registry must change it.
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
    """The membership in the ``kind/name`` of an entry; None when it is about something else."""
    kind, name = kind_and_name(key)
    level = MEMBER_LEVELS.get(kind)
    if level is None:
        return None
    group, _, path = name.partition("/")
    return Membership(level, group, snapshot_key(level, path))


def storage_policy_of(entry: Entry | None) -> str:
    """The storage policy that a placement names; empty without one, or when it makes no sense, which is logged."""
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
    return (kind in MEMBER_LEVELS or kind == PLACEMENT) and _encodable(name)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        log.error("an entry of the registry is left out: %s", error)
        return False
    return True
