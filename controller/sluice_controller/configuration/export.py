"""The configuration as a document to keep, compare and import again (``docs/admin/export.md``).

Policies are exported as sentences.  Plans and assignments are exported only for policies that were *kept* of an actor,
since no sentence names their members.  Code is exported by digest.  Default values are left out.  Groups
are exported with all of their members, which the registry keeps as entries of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from sluice_controller.configuration.configuration import Configuration
from sluice_controller.policies.services import KEPT
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Entry, Policy
from sluice_core.messages.registry import GROUP_KINDS, MEMBER_KINDS, Group, groups, is_member
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload

#: Kind of a group → level of its members, and how many slashes are in their paths.
_LEVELS: Mapping[str, tuple[str, int]] = {one.group: (level, one.slashes) for level, one in GROUP_KINDS.items()}


def fold_members(entries: Mapping[str, Entry]) -> list[Entry]:
    """The entries by key, with members as part of their group."""
    known = {kind: groups(entries, kind) for kind in MEMBER_KINDS}
    return [_whole(one, known) for key, one in sorted(entries.items()) if not is_member(key)]


def unfold_members(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries in the form of the registry, after :func:`check_group_document`."""
    for entry in entries:
        if entry.kind in MEMBER_KINDS:
            yield from Group.read(entry).entries(entry.created, entry.created_by)
        else:
            yield entry


def check_group_document(entry: Entry) -> None:
    """Check that a group in a document could have been created by the other calls.

    :raises CallerError: when ``entry`` is a group and is not valid
    """
    if entry.kind not in MEMBER_KINDS:
        return
    group, (level, slashes) = Group.read(entry), _LEVELS[entry.kind]
    if "/" in group.name:
        raise CallerError(f"`name` is `{group.name}`, which contains `/`")
    if group.level != level:
        raise CallerError(f"`level` of {entry.kind} `{group.name}` is `{group.level}`, expected `{level}`")
    for path in group.members:
        if path.count("/") != slashes or not all(path.split("/")):
            raise CallerError(f"member `{path}` of {entry.kind} `{group.name}` is not a {level}")
    stray = next((path for path in group.labels if path not in group.members), None)
    if stray is not None:
        raise CallerError(f"`labels` of {entry.kind} `{group.name}` names `{stray}`, which is not a member")


def _whole(entry: Entry, known: Mapping[str, Mapping[str, Group]]) -> Entry:
    group = known.get(entry.kind, {}).get(entry.name)
    if group is None:
        return entry
    data = {"level": group.level, "members": list(group.members), "labels": dict(group.labels)}
    return replace(entry, data=data)


#: Version of the format.
FORMAT: Final = 1
#: Name in a document → whether it is always there; the rest of a policy is derived.
POLICY_FIELDS: Final = ("id", "policy", "source", "enabled", "created", "created_by", "origin", "kept")

#: Section of a document → kind of the uploaded code in it.
CODE_SECTIONS: Final[Mapping[str, str]] = {
    "filters": FILTER_CODE,
    "metrics": METRIC_CODE,
    "controllers": CONTROLLER_CODE,
}
#: Fields of an upload that its section and :func:`_origin` contain.
_SAID_OTHERWISE: Final = ("kind", "created", "created_by")


def document(configuration: Configuration) -> dict[str, Any]:
    """The whole configuration, as plain data in a fixed order."""
    policies = sorted(configuration.policies.values(), key=lambda one: (one.created, one.id))
    return {
        "sluice": FORMAT,
        "policies": [policy_document(one) for one in policies],
        "registry": [entry_document(one) for one in fold_members(configuration.entries)],
        **{
            section: [upload_document(one) for _, one in sorted(configuration.uploads.items()) if one.kind == kind]
            for section, kind in CODE_SECTIONS.items()
        },
    }


def policy_document(policy: Policy) -> dict[str, Any]:
    """One policy."""
    document: dict[str, Any] = {"id": policy.id, "policy": policy.text}
    if policy.source != policy.text:
        document["source"] = policy.source
    if not policy.enabled:
        document["enabled"] = False
    document |= _origin(policy)
    if policy.origin:
        document["origin"] = policy.origin
    if KEPT in policy.plan:
        document[KEPT] = {"plan": {k: v for k, v in policy.plan.items() if k != KEPT}, "assignments": policy.plan[KEPT]}
    return document


def entry_document(entry: Entry) -> dict[str, Any]:
    """One entry of the registry."""
    found: dict[str, Any] = {"kind": entry.kind, "name": entry.name, "data": dict(entry.data)}
    return found | _origin(entry)


def upload_document(upload: Upload) -> dict[str, Any]:
    """One registered filter, uploaded metric or controller; its section says which."""
    defaults = Upload("", "", "", "", "", 0).to_data()
    needed = ("keyword", "environment", "language", "main", "sha256", "size")
    document = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in upload.to_data().items()
        if name in needed or (name not in _SAID_OTHERWISE and value != defaults[name])
    }
    return document | _origin(upload)


def _origin(message: Policy | Entry | Upload) -> dict[str, Any]:
    by = {"created_by": message.created_by} if message.created_by else {}
    return {"created": message.created, **by}
