"""Groups of tenants and of containers: made, filled, emptied.

A member is an account or ``account/container``; a project's name stands for its account, and stays beside it as
the member's label.  Asking for a member works with either.  Each member is an entry of the registry, so a change costs
what it changes; its expected version is the group's, which every change of a member moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog import entries, reference_guards, usage
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import StoredRecord
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import new_name, refuse_clash, target_meanings
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import CONTAINER, NAME, TENANT
from sluice_core.messages.registry import ALIAS, CONTAINER_GROUP, GROUP, Group, groups
from sluice_core.store.records import Draft
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.targets import resolve_target
from sluice_dsl.diagnostics import ERROR, Reporter
from sluice_dsl.syntax import ast


@dataclass(frozen=True, slots=True)
class GroupKind:
    """Groups of one level: their ``kind`` in the registry, and ``one`` and ``many`` members in bodies and paths."""

    kind: str
    level: str
    one: str
    many: str
    what: str


TENANTS: Final = GroupKind(GROUP, TENANT, "tenant", "tenants", "group of tenants")
CONTAINERS: Final = GroupKind(CONTAINER_GROUP, CONTAINER, "container", "containers", "group of containers")


@dataclass(frozen=True, slots=True)
class Member:
    """What a group consists of; ``label`` is empty unless it was named by another word."""

    path: str
    label: str = ""


def list_all(backend: Backend, sort: GroupKind) -> dict[str, StoredRecord[Group]]:
    """All groups of one sort by name."""
    there = backend.policy_cache.contents().entries
    read = groups(there, sort.kind)
    return {
        name: replace(found, record=read[name])
        for name, found in entries.records_of_kind(there, Group, sort.kind).items()
    }


def find(backend: Backend, sort: GroupKind, name: str, expected: int | None = None) -> StoredRecord[Group]:
    """One group.

    :raises NotFound: when there is none
    """
    # read before its members are: whoever changes one of them changes this version
    found = entries.find(backend, Group, sort.kind, name, sort.what, expected)
    there = backend.policy_cache.contents().entries
    return replace(found, record=groups(there, sort.kind, name).get(name, found.record))


def create(backend: Backend, sort: GroupKind, data: Any, by: str) -> StoredRecord[Group]:
    """The group that ``data`` describes.

    :raises CallerError: for everything that is wrong with it
    :raises Conflict: when its name means something
    """
    body = Body(data, "name", sort.many)
    name = new_name(body.text("name"))
    catalogue = backend.catalogue
    refuse_clash(name, target_meanings(name, catalogue))
    group = _with(Group(name, sort.level), _resolved(sort, body.texts(sort.many), catalogue))
    absent = {f"entry/{kind}/{name}": 0 for kind in (GROUP, CONTAINER_GROUP, ALIAS)}
    created = int(backend.now() * 1000)
    done = backend.store.commit(Draft(by, entries=group.entries(created, by), expect=absent))
    return StoredRecord(group, done.version, created, by)


def update(
    backend: Backend, sort: GroupKind, name: str, data: Any, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """Add the one member that ``data`` names, or put the members that it lists in the place of all.

    :raises CallerError: when it does neither or both
    """
    body = Body(data, sort.one, sort.many)
    if body.has(sort.one) is body.has(sort.many):
        raise CallerError(f"expected `{sort.one}`, a member to add, or `{sort.many}`, all members")
    if body.has(sort.one):
        return add(backend, sort, name, body.text(sort.one), by, expected)
    old = find(backend, sort, name, expected)
    members = _resolved(sort, body.texts(sort.many), backend.catalogue)
    return _update(backend, old, _with(replace(old.record, members=(), labels={}), members), by)


def add(
    backend: Backend, sort: GroupKind, name: str, member: str, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """The group with one more member; the same when it is in there already."""
    old = find(backend, sort, name, expected)
    return _update(backend, old, _with(old.record, _resolved(sort, [member], backend.catalogue)), by)


def remove(
    backend: Backend, sort: GroupKind, name: str, member: str, by: str, expected: int | None = None
) -> StoredRecord[Group]:
    """The group without a member.

    :raises NotFound: when it is not in there
    """
    old = find(backend, sort, name, expected)
    gone = find_member(sort, old.record, member, backend.catalogue).path
    members = tuple(one for one in old.record.members if one != gone)
    return _update(backend, old, old.record.having({path: old.record.labels.get(path, "") for path in members}), by)


def delete(backend: Backend, sort: GroupKind, name: str, by: str, force: bool, expected: int | None = None) -> None:
    """Forget a group.

    :raises Conflict: when policies are about it, unless ``force``
    """
    key = f"{sort.kind}/{name}"

    def once(seen: dict[str, int]) -> None:
        old = find(backend, sort, name, expected)
        users = usage.policies_about_group(backend.policy_cache.contents(), name, sort.level)
        usage.refuse_used(f"{sort.what} `{name}`", users, force)
        _, gone = replace(old.record, members=()).since(old.record)
        expect = {**seen, f"entry/{key}": old.version}
        backend.store.commit(Draft(by, entry_drops=(key, *gone), expect=expect))

    reference_guards.unless_used(backend, f"entry/{key}", once, force)


def _update(backend: Backend, old: StoredRecord[Group], new: Group, by: str) -> StoredRecord[Group]:
    """Put ``new`` in the place of ``old``: only who comes and who goes is written, and the group's own entry.

    :raises Conflict: when somebody changed it meanwhile
    """
    if old.record == new:
        return old
    puts, drops = new.since(old.record, old.created, old.created_by)
    draft = Draft(by, entries=puts, entry_drops=drops, expect={f"entry/{puts[0].key}": old.version})
    return replace(old, record=new, version=backend.store.commit(draft).version)


def members(group: Group) -> list[Member]:
    """The members in order."""
    return [Member(one, group.labels.get(one, "")) for one in group.members]


def find_member(sort: GroupKind, group: Group, member: str, catalogue: Catalogue) -> Member:
    """The member that was asked for by its path or the words it was added by.

    :raises NotFound: when it is not in there
    """
    for one in members(group):
        if member in (one.path, one.label):
            return one
    path = resolve_member(sort, member, catalogue).path
    if path in group.members:
        return Member(path, group.labels.get(path, ""))
    raise NotFound(f"{sort.what} `{group.name}` has no member `{member}`")


def resolve_member(sort: GroupKind, text: str, catalogue: Catalogue) -> Member:
    """What ``text`` names, as a sentence would take it behind TENANT or CONTAINER.

    :raises CallerError: when it cannot be one
    """
    reporter = Reporter(text)
    target = resolve_target(ast.Target(sort.level, NAME, ast.Word(text, (0, len(text)))), catalogue, reporter)
    problems = reporter.all(ERROR)
    if target is None or problems:
        reason = problems[0].message if problems else f"expected a {sort.one}"
        raise CallerError(f"member `{text}`: {reason}")
    return Member(target.name, target.label)


def _resolved(sort: GroupKind, texts: Sequence[str], catalogue: Catalogue) -> list[Member]:
    return [resolve_member(sort, one, catalogue) for one in texts]


def _with(group: Group, more: Iterable[Member]) -> Group:
    """``group`` and ``more`` members, each once."""
    labelled = group.labelled()
    for one in more:
        labelled[one.path] = one.label or labelled.get(one.path, "")
    if len(labelled) > entries.LARGEST_GROUP:
        raise Conflict(
            f"group `{group.name}` would have {len(labelled)} members, expected at most {entries.LARGEST_GROUP}"
        )
    return group.having(labelled)
