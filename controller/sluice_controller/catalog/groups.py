"""Groups of tenants, of containers and of volumes: made, filled, emptied.

A member is an account, ``account/container`` or ``account/volume id``; a project's name stands for its account, a
volume's for its path, and stays beside it as the member's label.  Asking for a member works with either.  Each member
is an entry of the registry, so a change costs what it changes; its expected version is the group's, which every change
of a member moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.reference_guards import policies_about_group
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import new_name, refuse_clash, target_meanings
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import CONTAINER, NAME, TENANT, VOLUME
from sluice_core.messages.registry import ALIAS, GROUP_KINDS, MEMBER_KINDS, Group, groups
from sluice_core.store.records import Draft
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.targets import resolve_target
from sluice_dsl.diagnostics import ERROR, Reporter
from sluice_dsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Member:
    """What a group consists of; ``label`` is empty unless it was named by another word."""

    path: str
    label: str = ""


@dataclass(frozen=True)
class GroupKind(RecordKind[Group]):
    """Groups of members of one ``level``; that and ``many`` are what bodies and paths call members."""

    level: str = ""
    many: str = ""

    def list_all(self, backend: Backend) -> dict[str, StoredRecord[Group]]:
        """All groups by name, with their members."""
        read = groups(backend.policy_cache.contents().entries, self.kind)
        return {
            name: replace(one, record=read.get(name, one.record)) for name, one in super().list_all(backend).items()
        }

    def find(self, backend: Backend, name: str, expected: int | None = None) -> StoredRecord[Group]:
        """One group with its members.

        :raises NotFound: when there is none
        """
        # read before its members are: whoever changes one of them changes this version
        found = super().find(backend, name, expected)
        there = backend.policy_cache.contents().entries
        return replace(found, record=groups(there, self.kind, name).get(name, found.record))

    def parts(self, record: Group) -> Sequence[str]:
        """The entries of its members."""
        return replace(record, members=()).changes_from(record)[1]


def _kind(level: str, many: str) -> GroupKind:
    return GroupKind(Group, GROUP_KINDS[level].group, f"group of {many}", policies_about_group, None, level, many)


TENANTS: Final = _kind(TENANT, "tenants")
CONTAINERS: Final = _kind(CONTAINER, "containers")
VOLUMES: Final = _kind(VOLUME, "volumes")


def create(backend: Backend, kind: GroupKind, data: Any, by: str) -> StoredRecord[Group]:
    """The group that ``data`` describes.

    :raises CallerError: for everything that is wrong with it
    :raises Conflict: when its name means something
    """
    body = Body(data, "name", kind.many)
    name = new_name(body.text("name"))
    catalogue = backend.catalogue
    refuse_clash(name, target_meanings(name, catalogue))
    group = _with(Group(name, kind.level), _resolved(kind, body.texts(kind.many), catalogue))
    absent = {f"entry/{kind}/{name}": 0 for kind in (*MEMBER_KINDS, ALIAS)}
    created = int(backend.now() * 1000)
    done = backend.store.commit(Draft(by, entries=group.entries(created, by), expect=absent))
    return StoredRecord(group, done.version, created, by)


def update(
    backend: Backend, kind: GroupKind, name: str, data: Any, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """Add the one member that ``data`` names, or put the members that it lists in the place of all.

    :raises CallerError: when it does neither or both
    """
    body = Body(data, kind.level, kind.many)
    if body.has(kind.level) is body.has(kind.many):
        raise CallerError(f"expected `{kind.level}`, a member to add, or `{kind.many}`, all members")
    if body.has(kind.level):
        return add_member(backend, kind, name, body.text(kind.level), by, expected)
    members = _resolved(kind, body.texts(kind.many), backend.catalogue)
    old = kind.find(backend, name, expected)
    return _update(backend, old, _with(replace(old.record, members=(), labels={}), members), by)


def add_member(
    backend: Backend, kind: GroupKind, name: str, member: str, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """The group with one more member; the same when it is in there already."""
    members = _resolved(kind, [member], backend.catalogue)
    old = kind.find(backend, name, expected)
    return _update(backend, old, _with(old.record, members), by)


def remove_member(
    backend: Backend, kind: GroupKind, name: str, member: str, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """The group without a member.

    :raises NotFound: when it is not in there
    """
    old = kind.find(backend, name, expected)
    gone = find_member(kind, old.record, member, backend.catalogue).path
    left = {path: label for path, label in old.record.labels_by_member().items() if path != gone}
    return _update(backend, old, old.record.with_members(left), by)


def _update(backend: Backend, old: StoredRecord[Group], new: Group, by: str) -> StoredRecord[Group]:
    """Put ``new`` in the place of ``old``: only who comes and who goes is written, and the group's own entry.

    :raises Conflict: when somebody changed it meanwhile
    """
    if old.record == new:
        return old
    puts, drops = new.changes_from(old.record, old.created, old.created_by)
    draft = Draft(by, entries=puts, entry_drops=drops, expect={f"entry/{puts[0].key}": old.version})
    return replace(old, record=new, version=backend.store.commit(draft).version)


def members(group: Group) -> list[Member]:
    """The members in order."""
    return [Member(one, group.labels.get(one, "")) for one in group.members]


def find_member(kind: GroupKind, group: Group, member: str, catalogue: Catalogue) -> Member:
    """The member that was asked for by its path or the words it was added by.

    :raises NotFound: when it is not in there
    """
    for one in members(group):
        if member in (one.path, one.label):
            return one
    path = resolve_member(kind.level, member, catalogue).path
    if path in group.members:
        return Member(path, group.labels.get(path, ""))
    raise NotFound(f"{kind.title} `{group.name}` has no member `{member}`")


def resolve_member(level: str, text: str, catalogue: Catalogue) -> Member:
    """What ``text`` names, as a sentence would take it behind TENANT, CONTAINER or VOLUME.

    :raises CallerError: when it cannot be one
    """
    reporter = Reporter(text)
    target = resolve_target(ast.Target(level, NAME, ast.Word(text, span=(0, len(text)))), catalogue, reporter)
    problems = reporter.all(ERROR)
    if target is None or problems:
        reason = problems[0].message if problems else f"expected a {level}"
        raise CallerError(f"member `{text}`: {reason}")
    return Member(target.name, target.label)


def _resolved(kind: GroupKind, texts: Sequence[str], catalogue: Catalogue) -> list[Member]:
    return [resolve_member(kind.level, one, catalogue) for one in texts]


def _with(group: Group, more: Iterable[Member]) -> Group:
    """``group`` and ``more`` members, each once."""
    labelled = group.labels_by_member()
    for one in more:
        labelled[one.path] = one.label or labelled.get(one.path, "")
    if len(labelled) > entries.LARGEST_GROUP:
        raise Conflict(
            f"group `{group.name}` would have {len(labelled)} members, expected at most {entries.LARGEST_GROUP}"
        )
    return group.with_members(labelled)
