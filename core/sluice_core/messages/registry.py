"""The registry: words and groups that administrators define, one message for all kinds of them.

Redis and the change stream hold ``messages.policies.Entry``; the classes here define the ``data`` of each kind.  The
key of an entry is ``<kind>/<name>``.

======================  ===============================================================================
kind                    meaning
======================  ===============================================================================
``group``               tenants under one name: :class:`Group` of level tenant
``container_group``     containers under one name: :class:`Group` of level container
``volume_group``        volumes under one name: :class:`Group` of level volume
``tenant_member``       one tenant in a group, ``<group>/<account>``: :class:`Member`
``container_member``    one container in a group, ``<group>/<account>/<container>``: :class:`Member`
``volume_member``       one volume in a group, ``<group>/<account>/<volume id>``: :class:`Member`
``term``                a coined word for media types: :class:`Term`
``alias``               another word for a filter, a metric or a target: :class:`Alias`
``stereotype``          sentences with a hole for the target: :class:`Stereotype`
``placement``           the storage policy of a tenant's new containers: :class:`Placement`
``activation``          the URLs that are called when a filter is set or removed: :class:`Activation`
``metric``              a metric of another publisher than Sluice's plugins: :class:`Metric`
``dependency``          a file that uploaded filters may need: :class:`Dependency`
======================  ===============================================================================

A group's members are entries of their own, so that a new or removed member changes one small entry, independently of
the size of the group.  **A writer of a member also writes the group's entry**, unchanged: so the version of that entry
is the version of the whole group, and two concurrent changes of one group conflict.

The answer of an activation's service is not an entry: it is kept beside the entries, as :class:`ServiceState`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

from sluice_core.describe import PROXY, SERVICE, ActionInfo, Parameter, Scalar
from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message, tuple_fields
from sluice_core.messages.policies import CONTAINER, TENANT, VOLUME, Entry

GROUP: Final = "group"
CONTAINER_GROUP: Final = "container_group"
VOLUME_GROUP: Final = "volume_group"
TENANT_MEMBER: Final = "tenant_member"
CONTAINER_MEMBER: Final = "container_member"
VOLUME_MEMBER: Final = "volume_member"
TERM: Final = "term"
ALIAS: Final = "alias"
STEREOTYPE: Final = "stereotype"
PLACEMENT: Final = "placement"
ACTIVATION: Final = "activation"
METRIC_ENTRY: Final = "metric"
DEPENDENCY: Final = "dependency"
#: What an alias may stand for.
FILTER, METRIC, TARGET = "filter", "metric", "target"
#: The place of the target in a stereotype's sentences.
HOLE: Final = "{target}"


class GroupKinds(NamedTuple):
    """The kinds of the entries of a group and of its members, and how many slashes are in a member's path."""

    group: str
    member: str
    slashes: int


#: Level of the members → the kinds of such groups.
GROUP_KINDS: Final[Mapping[str, GroupKinds]] = {
    TENANT: GroupKinds(GROUP, TENANT_MEMBER, 0),
    CONTAINER: GroupKinds(CONTAINER_GROUP, CONTAINER_MEMBER, 1),
    VOLUME: GroupKinds(VOLUME_GROUP, VOLUME_MEMBER, 1),
}


def group_kinds(level: str) -> GroupKinds:
    """Return the kinds of groups whose members are of ``level``; a level without groups counts as tenant."""
    return GROUP_KINDS.get(level, GROUP_KINDS[TENANT])


@dataclass(frozen=True, slots=True)
class RegistryRecord(Message):
    """Base of the data of entries; ``kinds`` are the kinds of entry that a class describes."""

    name: str

    kinds: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        for name in tuple_fields(cls, "tuple[str, ...]"):  # type: ignore[arg-type]
            found = data.get(name, ())
            if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
                raise DecodeError(f"`{name}` is `{found!r}`, expected a list of texts")
        return super(RegistryRecord, cls).from_data(data)

    def entry(self, created: int = 0, by: str = "", kind: str = "") -> Entry:
        """The entry of this record."""
        data = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.to_data().items()
            if name != "name"
        }
        return Entry(kind or self.kinds[0], self.name, data, created, by)

    @classmethod
    def read(cls, entry: Entry) -> Self:
        """The record in ``entry``.

        :raises DecodeError: when it is of another kind or shape
        """
        if entry.kind not in cls.kinds:
            raise DecodeError(f"entry `{entry.key}` is no {cls.__name__}", entry.encode())
        try:
            return cls.from_data({**entry.data, "name": entry.name})
        except (TypeError, ValueError, AttributeError) as error:
            raise DecodeError(f"entry `{entry.key}` is no {cls.__name__}: {error}", entry.encode()) from error


T = TypeVar("T", bound=RegistryRecord)


@dataclass(frozen=True, slots=True)
class Group(RegistryRecord):
    """``members`` are accounts, ``account/container`` or ``account/volume id``, by ``level``, in alphabetical order.

    ``labels`` keeps the words by which members were named if they differ (a project's name).  The group's own entry
    only records its existence; :meth:`entries` are all entries, and :func:`groups` reads them.
    """

    level: str = TENANT
    members: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    kinds: ClassVar[tuple[str, ...]] = tuple(one.group for one in GROUP_KINDS.values())

    def entry(self, created: int = 0, by: str = "", kind: str = "") -> Entry:
        return Entry(kind or group_kinds(self.level).group, self.name, {"level": self.level}, created, by)

    @property
    def member_kind(self) -> str:
        """Kind of its members' entries."""
        return group_kinds(self.level).member

    def labels_by_member(self) -> dict[str, str]:
        """Path → label of each member, empty where it has none."""
        return {path: self.labels.get(path, "") for path in self.members}

    def with_members(self, labelled: Mapping[str, str]) -> Self:
        """This group with exactly the members of ``labelled`` (as of :meth:`labels_by_member`)."""
        labels = {path: label for path, label in sorted(labelled.items()) if label}
        return replace(self, members=tuple(sorted(labelled)), labels=labels)

    def entries(self, created: int = 0, by: str = "") -> tuple[Entry, ...]:
        """The group and its members."""
        return self.changes_from(None, created, by)[0]

    def changes_from(
        self, old: Group | None, created: int = 0, by: str = ""
    ) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        """The entries to put and the ``kind/name`` of those to drop, to turn ``old`` (None: nothing) into this."""
        before, after = {} if old is None else old.labels_by_member(), self.labels_by_member()
        come = ((path, label) for path, label in after.items() if before.get(path) != label)
        members = (Member(f"{self.name}/{path}", label).entry(kind=self.member_kind) for path, label in come)
        gone = tuple(f"{self.member_kind}/{self.name}/{path}" for path in before if path not in after)
        return (self.entry(created, by), *members), gone


@dataclass(frozen=True, slots=True)
class Member(RegistryRecord):
    """One member of a group; ``name`` is ``<group>/<path>``, ``label`` the word by which it was named, if different.

    The name of a group holds no slash.
    """

    label: str = ""

    kinds: ClassVar[tuple[str, ...]] = tuple(one.member for one in GROUP_KINDS.values())


@dataclass(frozen=True, slots=True)
class Term(RegistryRecord):
    """A word for media types and file name extensions, as ``DOCS`` = pdf, doc, …"""

    values: tuple[str, ...] = ()

    kinds: ClassVar[tuple[str, ...]] = (TERM,)


@dataclass(frozen=True, slots=True)
class Alias(RegistryRecord):
    """Another word: ``of`` is the type of the thing that it names, ``text`` the thing.

    * filter: ``text`` is a keyword, ``params`` its parameters;
    * metric: ``text`` is a metric, ``level`` a granularity: ``GET_SEC_TENANT`` is GETS_SEC at tenant;
    * target: ``text`` is ``account[/container[/object]]``, or ``account/volume id`` where ``level`` is volume.
    """

    of: str = TARGET
    text: str = ""
    level: str = ""
    params: Mapping[str, Scalar] = field(default_factory=dict)

    kinds: ClassVar[tuple[str, ...]] = (ALIAS,)


@dataclass(frozen=True, slots=True)
class Stereotype(RegistryRecord):
    """``text`` holds sentences in which :data:`HOLE` stands for the target; ``help`` is its purpose."""

    text: str = ""
    help: str = ""

    kinds: ClassVar[tuple[str, ...]] = (STEREOTYPE,)


@dataclass(frozen=True, slots=True)
class Placement(RegistryRecord):
    """The storage policy of new containers of the account ``name`` is ``storage_policy``."""

    storage_policy: str = ""

    kinds: ClassVar[tuple[str, ...]] = (PLACEMENT,)


@dataclass(frozen=True, slots=True)
class Activation(RegistryRecord):
    """The URLs that are called when a policy sets the filter ``name`` (``url``) and deletes it (``undo``).

    Both may hold ``{target}`` and ``{filter}``; parameters go into the body as JSON.  ``timeout`` in seconds.  With
    ``service`` the filter is the service's own: no node has it, and ``parameters`` (fields of ``describe.Parameter``)
    and ``help`` describe it.
    """

    url: str = ""
    undo: str = ""
    timeout: float = 5.0
    service: bool = False
    help: str = ""
    parameters: tuple[Mapping[str, Any], ...] = ()

    kinds: ClassVar[tuple[str, ...]] = (ACTIVATION,)

    def info(self) -> ActionInfo:
        """Return the filter of a ``service``, in the form of the language's catalogue.

        :raises DecodeError: when its parameters are invalid
        """
        try:
            parameters = tuple(map(Parameter.from_data, self.parameters))
        except (TypeError, ValueError, AttributeError) as error:
            raise DecodeError(f"parameters of service `{self.name}`: {error}") from error
        return ActionInfo(self.name, SERVICE, self.help or f"a call to {self.url}", parameters, on_put=False)


@dataclass(frozen=True, slots=True)
class Metric(RegistryRecord):
    """A metric of another publisher than a plugin of the proxies.

    ``unit``, ``granularities`` and ``period`` as in ``describe.MetricInfo``; ``type`` is gauge, counter or rate;
    ``location`` is the routing key under which its batches come.
    """

    unit: str = "count"
    type: str = "gauge"
    granularities: tuple[str, ...] = (TENANT,)
    period: float = 1.0
    help: str = ""
    location: str = ""

    kinds: ClassVar[tuple[str, ...]] = (METRIC_ENTRY,)


@dataclass(frozen=True, slots=True)
class Dependency(RegistryRecord):
    """A file beside the code of filters; ``sha256`` is empty until its data is uploaded."""

    sha256: str = ""
    size: int = 0
    revision: int = 1
    help: str = ""

    kinds: ClassVar[tuple[str, ...]] = (DEPENDENCY,)


#: Kind of a group → kind of its members.
MEMBER_KINDS: Final[Mapping[str, str]] = {one.group: one.member for one in GROUP_KINDS.values()}

#: Kind → class of its data; members are created and deleted with their groups.
KINDS: Final[Mapping[str, type[RegistryRecord]]] = {
    kind: thing
    for thing in (Group, Term, Alias, Stereotype, Placement, Activation, Metric, Dependency)
    for kind in thing.kinds
}


def named_records(entries: Mapping[str, Entry], cls: type[T], kind: str = "") -> dict[str, T]:
    """Return name → record of one class (and one of its kinds); invalid entries are left out."""
    records = {}
    for entry in entries.values():
        if entry.kind in cls.kinds and kind in ("", entry.kind):
            with contextlib.suppress(DecodeError):
                records[entry.name] = cls.read(entry)
    return records


def is_member(key: str) -> bool:
    """Whether ``kind/name`` is the key of a group's member."""
    return key.partition("/")[0] in Member.kinds


def groups(entries: Mapping[str, Entry], kind: str, only: str = "") -> dict[str, Group]:
    """Return name → group of one kind, with its members; invalid entries are left out.

    :param only: the name of the only group to return; empty: all
    """
    known_groups: dict[str, Group] = {}
    labels: dict[str, dict[str, str]] = {}
    own, theirs = f"{kind}/{only}", f"{MEMBER_KINDS[kind]}/{only}" + ("/" if only else "")
    for key, entry in entries.items():
        if key.startswith(theirs):
            name, _, path = entry.name.partition("/")
            label = entry.data.get("label", "")
            labels.setdefault(name, {})[path] = label if isinstance(label, str) else ""
        elif key == own if only else key.startswith(own):
            with contextlib.suppress(DecodeError):
                known_groups[entry.name] = Group.read(entry)
    return {name: group.with_members(labels.get(name, {})) for name, group in known_groups.items()}


#: States of a call: it waits, the service accepted it, or it failed and is repeated.
CALL_WAITING: Final = "waiting"
CALL_DONE: Final = "done"
CALL_FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class ServiceState(Message):
    """The last call about one assignment of a filter that a service enforces.

    ``undo`` says that the call removes the assignment; after its success no state is kept.  ``target``, ``params``
    and ``place`` are those of the call.  ``at`` is in unix seconds.
    """

    assignment: str
    policy: str
    keyword: str
    target: str
    state: str = CALL_WAITING
    reason: str = ""
    undo: bool = False
    attempts: int = 0
    at: float = 0.0
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = PROXY
