"""What all kinds of registry entries share: finding one with its version, writing it, listing them.

A version is read before what it guards, so whoever writes with it has seen nothing older.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sluice_controller.catalog.backend import Backend
from sluice_controller.errors import check_version
from sluice_core.errors import NotFound
from sluice_core.messages.policies import Entry
from sluice_core.messages.registry import RegistryRecord, named_records
from sluice_core.store.records import Committed, Draft

T = TypeVar("T")
LARGEST_PAGE: Final = 1000
#: All of it travels in one change when the group is made; who comes or goes later does alone.
LARGEST_GROUP: Final = 10_000


@dataclass(frozen=True, slots=True)
class StoredRecord(Generic[T]):
    """A thing and the version of its entry; ``created`` in unix milliseconds."""

    record: T
    version: int
    created: int = 0
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some things and what the next page begins behind; empty at the end."""

    records: Sequence[T]
    next_marker: str


TT = TypeVar("TT", bound=RegistryRecord)


def find(
    backend: Backend, cls: type[TT], kind: str, name: str, what: str, expected: int | None = None
) -> StoredRecord[TT]:
    """One thing of the registry; ``what`` it is called in errors.

    :raises NotFound: when there is none
    :raises PreconditionFailed: when it is not at version ``expected``
    """
    key = f"{kind}/{name}"
    version = backend.store.version(f"entry/{key}")
    entry = backend.policy_cache.contents().entries.get(key)
    if entry is None:
        raise NotFound(f"there is no {what} `{name}`")
    check_version(f"{what} `{name}`", version, expected)
    return StoredRecord(cls.read(entry), version, entry.created, entry.created_by)


def create(backend: Backend, thing: TT, by: str, rivals: Iterable[str] = ()) -> StoredRecord[TT]:
    """Put something new; ``rivals`` are kinds in which there must not be one of this name, besides its own.

    :raises Conflict: when there is one
    """
    entry = thing.entry(int(backend.now() * 1000), by)
    absent = {f"entry/{kind}/{thing.name}": 0 for kind in (*rivals, entry.kind)}
    done = backend.store.commit(Draft(by, entries=(entry,), expect=absent))
    return StoredRecord(thing, done.version, entry.created, by)


def update(
    backend: Backend, old: StoredRecord[TT], new: TT, by: str, seen: Mapping[str, int] | None = None
) -> StoredRecord[TT]:
    """Put ``new`` in the place of ``old``; nothing is written when they are the same.

    :param seen: versions of what else it depends on

    :raises Conflict: when somebody changed it meanwhile
    """
    if old.record == new:
        return old
    entry = new.entry(old.created, old.created_by)
    check_version = {**(seen or {}), f"entry/{entry.key}": old.version}
    done = backend.store.commit(Draft(by, entries=(entry,), expect=check_version))
    return StoredRecord(new, done.version, old.created, old.created_by)


def delete(
    backend: Backend, kind: str, name: str, version: int, by: str, seen: Mapping[str, int] | None = None
) -> Committed:
    """Take an entry out.

    :param seen: versions of what else it depends on

    :raises Conflict: when somebody changed it meanwhile
    """
    key = f"{kind}/{name}"
    check_version = {**(seen or {}), f"entry/{key}": version}
    return backend.store.commit(Draft(by, entry_drops=(key,), expect=check_version))


def page(known: Mapping[str, T], limit: int, marker: str = "", prefix: str = "") -> Page[T]:
    """Things by name, those behind ``marker`` whose name begins with ``prefix``."""
    names = [name for name in sorted(known) if name > marker and name.startswith(prefix)] if known else []
    things = [known[name] for name in names[:limit]]
    return Page(things, names[limit - 1] if len(names) > limit else "")


def records_of_kind(entries: Mapping[str, Entry], cls: type[TT], kind: str) -> dict[str, StoredRecord[TT]]:
    """All things of a kind by name, as lists show them (without versions); what makes no sense is left out."""
    prefix = f"{kind}/"
    mine = {key: entry for key, entry in entries.items() if key.startswith(prefix)}
    read = named_records(mine, cls, kind)
    return {
        entry.name: StoredRecord(read[entry.name], 0, entry.created, entry.created_by)
        for entry in mine.values()
        if entry.name in read
    }
