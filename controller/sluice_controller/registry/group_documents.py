"""Groups in documents: with all of their members, which the registry keeps as entries of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sluice_core.errors import CallerError
from sluice_core.messages.policies import Entry
from sluice_core.messages.registry import GROUP_KINDS, MEMBER_KINDS, Group, groups, is_member

#: Kind of a group → level of its members, and how many slashes are in their paths.
_LEVELS: Mapping[str, tuple[str, int]] = {one.group: (level, one.slashes) for level, one in GROUP_KINDS.items()}


def fold_members(entries: Mapping[str, Entry]) -> list[Entry]:
    """The entries by key, members within their group's."""
    known = {kind: groups(entries, kind) for kind in MEMBER_KINDS}
    return [_whole(one, known) for key, one in sorted(entries.items()) if not is_member(key)]


def unfold_members(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries as the registry keeps them; :func:`check_group_document` has seen them."""
    for entry in entries:
        if entry.kind in MEMBER_KINDS:
            yield from Group.read(entry).entries(entry.created, entry.created_by)
        else:
            yield entry


def check_group_document(entry: Entry) -> None:
    """A document's group must be one that could have been made by the other calls.

    :raises CallerError: when ``entry`` is a group and cannot be kept
    """
    if entry.kind not in MEMBER_KINDS:
        return
    group, (level, slashes) = Group.read(entry), _LEVELS[entry.kind]
    if "/" in group.name:
        raise CallerError(f"`name` is `{group.name}`, which holds `/`")
    if group.level != level:
        raise CallerError(f"`level` of {entry.kind} `{group.name}` is `{group.level}`, expected `{level}`")
    for path in group.members:
        if path.count("/") != slashes or not all(path.split("/")):
            raise CallerError(f"member `{path}` of {entry.kind} `{group.name}` is no {level}")
    stray = next((path for path in group.labels if path not in group.members), None)
    if stray is not None:
        raise CallerError(f"`labels` of {entry.kind} `{group.name}` names `{stray}`, which is no member")


def _whole(entry: Entry, known: Mapping[str, Mapping[str, Group]]) -> Entry:
    group = known.get(entry.kind, {}).get(entry.name)
    if group is None:
        return entry
    data = {"level": group.level, "members": list(group.members), "labels": dict(group.labels)}
    return replace(entry, data=data)
