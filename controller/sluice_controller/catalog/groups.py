"""Groups of tenants, of containers and of volumes, and changes of their members.

A member is an account, ``account/container`` or ``account/volume id``; a project's name is resolved to its account, a
volume's to its path, and is kept as the member's label.  Members are found by either name.  Each member
is an entry of the registry, so the cost of a change does not depend on the size of the group; its expected version is
the group's, which every change of a member increases.
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
    """A member of a group; ``label`` is empty unless it was added by another name."""

    path: str
    label: str = ""


@dataclass(frozen=True)
class GroupKind(RecordKind[Group]):
    """Groups of members of one ``level``; ``level`` and ``many`` are the names of members in bodies and paths."""

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
        # Read before its members: a change of a member also changes this version.
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
    """Create the group that ``data`` describes.

    :raises CallerError: when ``data`` is not valid
    :raises Conflict: when its name is taken
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
    """Add the one member in ``data``, or replace all members by those in ``data``.

    :raises CallerError: when ``data`` has neither or both
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
    """Add a member; a second time changes nothing."""
    members = _resolved(kind, [member], backend.catalogue)
    old = kind.find(backend, name, expected)
    return _update(backend, old, _with(old.record, members), by)


def remove_member(
    backend: Backend, kind: GroupKind, name: str, member: str, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """Remove a member.

    :raises NotFound: when it is not a member
    """
    old = kind.find(backend, name, expected)
    gone = find_member(kind, old.record, member, backend.catalogue).path
    left = {path: label for path, label in old.record.labels_by_member().items() if path != gone}
    return _update(backend, old, old.record.with_members(left), by)


def _update(backend: Backend, old: StoredRecord[Group], new: Group, by: str) -> StoredRecord[Group]:
    """Replace ``old`` by ``new``: only added and removed members are written, and the group's own entry.

    :raises Conflict: when it was changed meanwhile
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
    """The member with this path, or added by this name.

    :raises NotFound: when it is not a member
    """
    for one in members(group):
        if member in (one.path, one.label):
            return one
    path = resolve_member(kind.level, member, catalogue).path
    if path in group.members:
        return Member(path, group.labels.get(path, ""))
    raise NotFound(f"{kind.title} `{group.name}` has no member `{member}`")


def resolve_member(level: str, text: str, catalogue: Catalogue) -> Member:
    """The member called ``text``, resolved like a name after TENANT, CONTAINER or VOLUME in a sentence.

    :raises CallerError: when it is not a valid name
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
    """``group`` with ``more`` members, without duplicates."""
    labelled = group.labels_by_member()
    for one in more:
        labelled[one.path] = one.label or labelled.get(one.path, "")
    if len(labelled) > entries.LARGEST_GROUP:
        raise Conflict(
            f"group `{group.name}` would have {len(labelled)} members, expected at most {entries.LARGEST_GROUP}"
        )
    return group.with_members(labelled)
