"""Registry records with their versions: find, list, create, update and delete them, for all kinds.

A version is read before the record that it guards.  A commit that expects this version is therefore refused when
the record is newer than what the caller saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.errors import check_version
from sluice_core.errors import NotFound
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
    expect = {**(seen or {}), f"entry/{entry.key}": old.version}
    done = backend.store.commit(Draft(by, entries=(entry,), expect=expect))
    return StoredRecord(new, done.version, old.created, old.created_by)


def page(known: Mapping[str, T], limit: int, marker: str = "", prefix: str = "") -> Page[T]:
    """Things by name, those behind ``marker`` whose name begins with ``prefix``."""
    names = [name for name in sorted(known) if name > marker and name.startswith(prefix)] if known else []
    things = [known[name] for name in names[:limit]]
    return Page(things, names[limit - 1] if len(names) > limit else "")


@dataclass(frozen=True)
class RecordKind(Generic[TT]):
    """The records of one kind, for the resources of the registry.

    :param title: what errors call one of them
    :param users: the ids of the policies that use a record
    :param changeable: finds a record that may be changed, where that is more than :meth:`find`
    """

    cls: type[TT]
    kind: str
    title: str
    users: Callable[[CacheContents, TT], Iterable[str]] = lambda contents, record: ()
    changeable: Callable[[Backend, str, int | None], StoredRecord[TT]] | None = None

    def list_all(self, backend: Backend) -> dict[str, StoredRecord[TT]]:
        """All records by name, without versions; what makes no sense is left out."""
        prefix = f"{self.kind}/"
        mine = {key: one for key, one in backend.policy_cache.contents().entries.items() if key.startswith(prefix)}
        records = named_records(mine, self.cls, self.kind)
        return {
            one.name: StoredRecord(records[one.name], 0, one.created, one.created_by)
            for one in mine.values()
            if one.name in records
        }

    def find(self, backend: Backend, name: str, expected: int | None = None) -> StoredRecord[TT]:
        """One record.

        :raises NotFound: when there is none
        :raises PreconditionFailed: when it is not at version ``expected``
        """
        key = f"{self.kind}/{name}"
        version = backend.store.version(f"entry/{key}")
        entry = backend.policy_cache.contents().entries.get(key)
        if entry is None:
            raise NotFound(f"there is no {self.title} `{name}`")
        check_version(f"{self.title} `{name}`", version, expected)
        return StoredRecord(self.cls.read(entry), version, entry.created, entry.created_by)

    def update(
        self,
        backend: Backend,
        name: str,
        by: str,
        revise: Callable[[TT], TT],
        force: bool = False,
        expected: int | None = None,
    ) -> StoredRecord[TT]:
        """Put what ``revise`` makes of a record in its place; ``revise`` raises ``InUse`` where that hurts a user."""

        def change(seen: dict[str, int]) -> StoredRecord[TT]:
            old = (self.changeable or self.find)(backend, name, None)
            new = revise(old.record)
            check_version(f"{self.title} `{name}`", old.version, expected)
            return update(backend, old, new, by, seen)

        return reference_guards.unless_used(backend, f"entry/{self.kind}/{name}", change, force)

    def delete(self, backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
        """Delete a record.

        :raises Conflict: when something uses it, unless ``force``
        """

        def change(seen: dict[str, int]) -> None:
            old = (self.changeable or self.find)(backend, name, expected)
            self.refuse_used(backend, old.record, force)
            self.drop(backend, old, by, seen)

        reference_guards.unless_used(backend, f"entry/{self.kind}/{name}", change, force)

    def refuse_used(self, backend: Backend, record: TT, force: bool) -> None:
        """A record that policies use is taken away only with ``force``.

        :raises InUse: naming some of them
        """
        reference_guards.refuse_used(
            f"{self.title} `{record.name}`", self.users(backend.policy_cache.contents(), record), force
        )

    def drop(
        self, backend: Backend, old: StoredRecord[TT], by: str, seen: Mapping[str, int] | None = None
    ) -> Committed:
        """Take a record out, whatever uses it.

        :param seen: versions of what else that depends on
        :raises Conflict: when somebody changed it meanwhile
        """
        key = f"{self.kind}/{old.record.name}"
        expect = {**(seen or {}), f"entry/{key}": old.version}
        return backend.store.commit(Draft(by, entry_drops=(key, *self.parts(old.record)), expect=expect))

    def parts(self, record: TT) -> Sequence[str]:
        """Keys of the entries that go with a record."""
        return ()
