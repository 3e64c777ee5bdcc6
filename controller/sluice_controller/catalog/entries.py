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
from sluice_controller.validation.names import near_miss
from sluice_core.errors import NotFound
from sluice_core.messages.registry import RegistryRecord, named_records
from sluice_core.store.records import Committed, Draft

T = TypeVar("T")
LARGEST_PAGE: Final = 1000
#: A new group with all its members is one change; later changes of members are changes of their own.
LARGEST_GROUP: Final = 10_000


@dataclass(frozen=True, slots=True)
class StoredRecord(Generic[T]):
    """An object and the version of its entry; ``created`` in Unix milliseconds."""

    record: T
    version: int
    created: int = 0
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some objects and the marker of the next page; empty at the end."""

    records: Sequence[T]
    next_marker: str


TT = TypeVar("TT", bound=RegistryRecord)


def create(backend: Backend, thing: TT, by: str, rivals: Iterable[str] = ()) -> StoredRecord[TT]:
    """Create an entry; ``rivals`` are further kinds that must not have an entry of this name.

    :raises Conflict: when the name is taken
    """
    entry = thing.entry(int(backend.now() * 1000), by)
    absent = {f"entry/{kind}/{thing.name}": 0 for kind in (*rivals, entry.kind)}
    done = backend.store.commit(Draft(by, entries=(entry,), expect=absent))
    return StoredRecord(thing, done.version, entry.created, by)


def update(
    backend: Backend, old: StoredRecord[TT], new: TT, by: str, seen: Mapping[str, int] | None = None
) -> StoredRecord[TT]:
    """Replace ``old`` by ``new``; nothing is written if they are equal.

    :param seen: versions of other entries that it depends on

    :raises Conflict: when it was changed meanwhile
    """
    if old.record == new:
        return old
    entry = new.entry(old.created, old.created_by)
    expect = {**(seen or {}), f"entry/{entry.key}": old.version}
    done = backend.store.commit(Draft(by, entries=(entry,), expect=expect))
    return StoredRecord(new, done.version, old.created, old.created_by)


def page(known: Mapping[str, T], limit: int, marker: str = "", prefix: str = "") -> Page[T]:
    """The objects by name, those after ``marker`` whose name begins with ``prefix``."""
    names = [name for name in sorted(known) if name > marker and name.startswith(prefix)] if known else []
    things = [known[name] for name in names[:limit]]
    return Page(things, names[limit - 1] if len(names) > limit else "")


@dataclass(frozen=True)
class RecordKind(Generic[TT]):
    """The records of one kind, for the resources of the registry.

    :param title: the name of the kind in errors
    :param users: returns the ids of the policies that use a record
    :param changeable: finds a record and refuses one that cannot be changed; by default :meth:`find`
    """

    cls: type[TT]
    kind: str
    title: str
    users: Callable[[CacheContents, TT], Iterable[str]] = lambda contents, record: ()
    changeable: Callable[[Backend, str, int | None], StoredRecord[TT]] | None = None

    def list_all(self, backend: Backend) -> dict[str, StoredRecord[TT]]:
        """All records by name, without versions; records that are not valid are left out."""
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
            raise NotFound(f"there is no {self.title} `{name}`{near_miss(name, self.list_all(backend))}")
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
        """Replace a record by the result of ``revise``, which raises ``InUse`` if the change breaks a user."""

        def change(seen: dict[str, int]) -> StoredRecord[TT]:
            old = (self.changeable or self.find)(backend, name, None)
            new = revise(old.record)
            check_version(f"{self.title} `{name}`", old.version, expected)
            return update(backend, old, new, by, seen)

        return reference_guards.unless_used(backend, f"entry/{self.kind}/{name}", change, force)

    def delete(self, backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
        """Delete a record.

        :raises Conflict: when a policy uses it, unless ``force`` is given
        """

        def change(seen: dict[str, int]) -> None:
            old = (self.changeable or self.find)(backend, name, expected)
            self.refuse_used(backend, old.record, force)
            self.drop(backend, old, by, seen)

        reference_guards.unless_used(backend, f"entry/{self.kind}/{name}", change, force)

    def refuse_used(self, backend: Backend, record: TT, force: bool) -> None:
        """Refuse to remove a record that policies use, unless ``force`` is given.

        :raises InUse: naming some of them
        """
        reference_guards.refuse_used(
            f"{self.title} `{record.name}`", self.users(backend.policy_cache.contents(), record), force
        )

    def drop(
        self, backend: Backend, old: StoredRecord[TT], by: str, seen: Mapping[str, int] | None = None
    ) -> Committed:
        """Remove a record, without a check of its users.

        :param seen: versions of other entries that this depends on
        :raises Conflict: when it was changed meanwhile
        """
        key = f"{self.kind}/{old.record.name}"
        expect = {**(seen or {}), f"entry/{key}": old.version}
        return backend.store.commit(Draft(by, entry_drops=(key, *self.parts(old.record)), expect=expect))

    def parts(self, record: TT) -> Sequence[str]:
        """Keys of the entries that go with a record."""
        return ()
