"""Policies, their assignments and states, registry entries, and the changes that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from sluice_core.describe import OBJECTS, VOLUMES, Scalar
from sluice_core.messages.base import Message
from sluice_core.messages.predicate import Predicate
from sluice_core.messages.uploads import Upload

OBJECT: Final = "object"
CONTAINER: Final = "container"
TENANT: Final = "tenant"
CLUSTER: Final = "cluster"
VOLUME: Final = "volume"
LEVELS: Final = (OBJECT, CONTAINER, TENANT, CLUSTER, VOLUME)
#: Level → its rank; no item is both in a volume and in a container, so volumes and objects share ranks.
_RANKS: Final = {OBJECT: 0, VOLUME: 0, CONTAINER: 1, TENANT: 2, CLUSTER: 3}
#: Levels of only one resource type → that type; tenants and the cluster have objects and volumes.
LEVELS_ABOUT: Final = {OBJECT: OBJECTS, CONTAINER: OBJECTS, VOLUME: VOLUMES}

NAME: Final = "name"
GROUP: Final = "group"
ALL: Final = "all"
SELECTORS: Final = (NAME, GROUP, ALL)


def policy_of_assignment(assignment: str) -> str:
    """The policy id in an assignment's id ``<policy>.<number>[@<member>]``."""
    return assignment.partition("@")[0].rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Target(Message):
    """The target of a sentence.

    ``level`` object, container, tenant, cluster or volume; ``select`` name, group or all;
    ``name`` is ``account[/container[/object]]``, or ``account/volume id``, for a name, the group's name for a group,
    empty for ALL and CLUSTER.  ``label`` keeps the words of the sentence if they differ
    (a project's name whose id is in ``name``, an alias).
    """

    level: str
    select: str = NAME
    name: str = ""
    label: str = ""

    def rank(self) -> int:
        """The scope's rank, narrowest first: 0 is one object, then a group of objects, ALL OBJECTS, one container …

        Design section 5: object > ALL OBJECTS > container > ALL CONTAINERS > tenant >
        ALL TENANTS > CLUSTER, and at one scope a name before a group before ALL.
        Of volumes likewise: volume > ALL VOLUMES > tenant.
        """
        return _RANKS[self.level] * 3 + SELECTORS.index(self.select)


@dataclass(frozen=True, slots=True)
class Assignment(Message):
    """One action in force for one target, as agents and the data plane read it.

    ``id`` is ``<policy>.<action number>``, with ``@<member>`` appended when an actor of a
    group or ALL fired for one member; ``member`` then is that member's path at the level of
    ``target`` (whose rank stays that of the sentence).  ``when`` is the predicate over the
    request that remains.  ``created`` (unix milliseconds) of the policy: the newer wins.
    ``existing`` is true when stored objects are to be brought to it, too.
    ``about`` says whether it applies to objects, volumes or both; the level of its target may narrow that
    (:meth:`concerns`).
    """

    id: str
    policy: str
    kind: str
    verb: str
    keyword: str
    target: Target
    member: str = ""
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = "proxy"
    stage: int = 500
    order: int = 0
    protective: bool = False
    created: int = 0
    when: Predicate = True
    existing: bool = False
    about: tuple[str, ...] = (OBJECTS,)

    nested: ClassVar[Mapping[str, type[Message]]] = {"target": Target}

    def concerns(self, what: str) -> bool:
        """Whether it can apply to ``what``, OBJECTS or VOLUMES."""
        only = LEVELS_ABOUT.get(self.target.level)
        return what in self.about if only is None else what == only

    def path(self) -> str:
        """The path under which this assignment is stored; empty for ALL, groups and CLUSTER."""
        return self.member or (self.target.name if self.target.select == NAME else "")


@dataclass(frozen=True, slots=True)
class Policy(Message):
    """A policy as the controller keeps it.

    ``source`` as written, ``text`` canonical, ``plan`` the compiled plan's data
    (``sluice_dsl.plan.Plan``); ``dynamic`` says whether an actor runs for it.  Times are unix
    milliseconds.  ``origin`` names the writer of its sentence, ``stereotype/<name>``, ``deploy/<keyword>``,
    ``bw/<account>`` or ``slo/<account>``; empty when a user wrote it.
    """

    id: str
    source: str
    text: str
    plan: Mapping[str, Any]
    dynamic: bool
    created: int
    created_by: str = ""
    enabled: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Entry(Message):
    """One entry of the registry (``sluice_core.messages.registry``); ``created`` in unix milliseconds."""

    kind: str
    name: str
    data: Mapping[str, Any]
    created: int = 0
    created_by: str = ""

    @property
    def key(self) -> str:
        """Its key in the registry."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Firing(Message):
    """One action of a policy actor: ``what`` is set, changed or taken_back."""

    at: float
    what: str
    member: str = ""
    window: int = 0


@dataclass(frozen=True, slots=True)
class PolicyState(Message):
    """The state that an actor (or family of actors) continues from after a restart.

    ``members`` maps a member's path ("" when the policy has one fixed target) to the data of
    its live machine: the residual predicates of its last windows and the assignments in force.
    ``status``: waiting, active, failed; ``reason`` says why when failed.
    """

    policy: str
    status: str = "waiting"
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    firings: tuple[Firing, ...] = ()
    reason: str = ""

    nested: ClassVar[Mapping[str, type[Message]]] = {"firings": Firing}


@dataclass(frozen=True, slots=True)
class Change(Message):
    """One entry of the change stream: it is applied as a whole or not at all.

    ``puts`` are assignments (new or replacing), ``drops`` assignment ids; ``policies`` are the
    ids of policies created, replaced or deleted, so that actor hosts read them anew.  ``uploads``
    are filters, metrics and controllers registered or replaced, ``upload_drops`` the keys of deleted ones.
    ``entries`` are new or replaced registry entries, ``entry_drops`` the ``kind/name`` of deleted ones.
    The reader of the stream sets ``epoch``, ``history`` and ``digest`` (``sluice_core.store.history_check``).
    """

    epoch: int
    history: str
    at: float
    by: str = ""
    puts: tuple[Assignment, ...] = ()
    drops: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    uploads: tuple[Upload, ...] = ()
    upload_drops: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    entry_drops: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)

    nested: ClassVar[Mapping[str, type[Message]]] = {"puts": Assignment, "uploads": Upload, "entries": Entry}
