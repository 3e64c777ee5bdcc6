"""Bandwidth as all rooms speak of it: flows, objectives, and what agents and the dividing host tell each other.

A *flow* is what is held back as one: the bytes that one tenant (or one of its containers, when an objective speaks of
that) moves by one method under one storage policy.  Rates are bytes of client payload per second, counted once at
the proxies; at the object servers each copy counts.

What changes every second travels over the broker: each agent tells its :class:`NodeLoad`, one actor host divides and
answers every node with its :class:`Shares`.  What people look at is in ``sluice_core.messages.bandwidth_report``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.base import Message
from sluice_core.messages.bounds import MOST, MOST_RATE, NO_BOUND, Bounds
from sluice_core.messages.policies import Assignment

GET: Final = "GET"
PUT: Final = "PUT"
REPLICATION: Final = "REPLICATION"
METHODS: Final = (GET, PUT, REPLICATION)
#: Where bytes can be held back, and counted.
SIDES: Final = (PROXY, STORAGE_NODE)

#: The parameters of ``SET bandwidth`` that are rates, by method: floor, ceiling, floor of each object server.
FLOORS: Final = {GET: "get_bw", PUT: "put_bw"}
CEILINGS: Final = {GET: "max_get_bw", PUT: "max_put_bw"}
NODE_FLOORS: Final = {GET: "node_get_bw"}
STORAGE_POLICY: Final = "storage_policy"
CLASS: Final = "class"
#: Priority classes, and the level of best effort that each stands for (0 is for those below their floor).
CLASSES: Final[Mapping[str, int]] = {"gold": 1, "silver": 4, "bronze": 7}
#: The level of those that no objective names.
NO_CLASS: Final = 4
#: The parameter of ``SET replication``.
MAX_REPLICATION: Final = "max_bw"
#: A storage policy that is not known (yet).
ANY_POLICY: Final = -1
#: What replication is accounted to: it moves everybody's bytes.
NO_ACCOUNT: Final = ""

#: Bounds of what is measured on the wire.
OBJECT_BOUNDS: Final[Bounds] = {"rate": (0.0, MOST)}
_LOAD_BOUNDS: Final[Bounds] = {"moved": (0.0, MOST), "open": (0.0, MOST), "waiting": (0.0, MOST)}
#: Rates of shares are negative for no bound, and slightly below 0 by rounding.
_SHARE_BOUNDS: Final[Bounds] = dict.fromkeys(("rate", "floor", "ceiling"), (NO_BOUND, MOST_RATE))


class Flow(NamedTuple):
    """What is held back as one; ``policy`` is the storage policy's index, ``container`` mostly empty."""

    account: str
    method: str
    policy: int = 0
    container: str = ""

    @property
    def path(self) -> str:
        """``account`` or ``account/container``."""
        return f"{self.account}/{self.container}" if self.container else self.account


#: What is copied between storage nodes, of whatever storage policy.
REPLICATION_FLOW: Final = Flow(NO_ACCOUNT, REPLICATION)


@dataclass(frozen=True, slots=True)
class Objective(Message):
    """What one assignment of kind ``bandwidth`` promises for one method; rates in bytes per second, 0 for none.

    ``level`` is tenant or container, ``select`` name, group or all, ``name`` the path, the group's name, or empty.
    ``storage_policy`` is a name or an index as it was written, empty for all.  ``node_floor`` is promised on each
    object server that the flow is active on.  ``side`` says where it is held back.  ``rank`` as
    ``messages.Target.rank``; among equals the newer ``created`` wins.
    """

    assignment: str
    policy: str
    method: str
    level: str
    select: str
    name: str
    floor: float = 0.0
    ceiling: float = 0.0
    node_floor: float = 0.0
    storage_policy: str = ""
    priority: int = NO_CLASS
    side: str = PROXY
    rank: int = 0
    created: int = 0


def priority_level(name: object) -> int:
    """The level of best effort, 1 to 7, that a class's name or number means."""
    text = str(name).lower()
    return CLASSES[text] if text in CLASSES else min(max(int(text), 1), 7)


def objectives(assignment: Assignment) -> Iterator[Objective]:
    """What an assignment of kind ``bandwidth`` promises, one for each method that it speaks of."""
    if assignment.kind != BANDWIDTH or assignment.verb == "delete":
        return
    given = assignment.params
    target = assignment.target
    for method in (GET, PUT):
        floor, ceiling, node_floor = (_rate(given, names.get(method)) for names in (FLOORS, CEILINGS, NODE_FLOORS))
        if floor or ceiling or node_floor:
            yield Objective(
                assignment.id,
                assignment.policy,
                method,
                target.level,
                "name" if assignment.member else target.select,
                assignment.path() or target.name,
                floor,
                ceiling,
                node_floor,
                storage_policy=str(given.get(STORAGE_POLICY, "")),
                priority=priority_level(given[CLASS]) if given.get(CLASS) else NO_CLASS,
                side=assignment.place,
                rank=target.rank(),
                created=assignment.created,
            )


def _rate(given: Mapping[str, Any], name: str | None) -> float:
    return float(given.get(name, 0.0)) if name else 0.0


class Load(NamedTuple):
    """How one flow fared on one side of one node, on one device, in the last second.

    ``device`` is empty at proxies.  ``moved`` bytes of payload passed; ``open`` is the mean number of transfers, of
    which ``waiting`` were held back by us (mean over the second; 0 when none is open any more at its end).
    """

    side: str
    account: str
    container: str
    method: str
    policy: int
    device: str
    moved: float
    open: float
    waiting: float

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


class MovedObject(NamedTuple):
    """One object on its way through an object server: ``rate`` in bytes per second, ``range`` as in ``0-end``.

    ``server`` is ``ip:port`` of that object server.  It does not travel with the object: :class:`NodeLoad` knows it.
    """

    device: str
    policy: int
    account: str
    oid: str
    method: str
    range: str
    rate: float
    server: str = ""

    def wire_row(self) -> tuple[str | int | float, ...]:
        """The fields that travel."""
        return self[:-1]


#: Objects that a node tells of, the fastest first.
MOST_OBJECTS: Final = 200


@dataclass(frozen=True, slots=True)
class NodeLoad(Message):
    """What one node's workers moved in one second.

    ``number`` counts the agent's messages from its ``started`` (unix time) on, so that doubled and overtaken ones are
    known.  ``server`` is ``ip:port`` of an object server of it; ``servers`` maps devices that another one serves (where
    each has a port of its own, say) to that one's.  ``capacity`` maps ``side`` to method → bytes per second as
    configured or calibrated; what is missing is to be estimated.  ``sides`` are those that workers serve here now;
    ``gone`` says that there were some, and none is left.
    """

    node: str
    at: float
    started: float
    number: int
    server: str = ""
    capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sides: tuple[str, ...] = ()
    gone: bool = False
    rows: tuple[Load, ...] = ()
    objects: tuple[MovedObject, ...] = ()
    policies: Mapping[str, str] = field(default_factory=dict)
    servers: Mapping[str, str] = field(default_factory=dict)

    binary: ClassVar[bool] = True
    row_types = {"rows": (Load, _LOAD_BOUNDS), "objects": (MovedObject, OBJECT_BOUNDS)}
    rates = ("capacity",)

    def __post_init__(self) -> None:
        objects = (one._replace(server=self.servers.get(one.device, self.server)) for one in self.objects)
        object.__setattr__(self, "objects", tuple(objects))

    def to_data(self) -> dict[str, Any]:
        return {**super(NodeLoad, self).to_data(), "objects": [one.wire_row() for one in self.objects]}


class Share(NamedTuple):
    """What one flow may move on one side of one node, in bytes of payload at that side per second.

    ``rate`` negative: as much as it likes.  ``floor`` is the part of its floor that lies on this node, ``ceiling`` what
    it must not exceed here though others leave theirs unused (0: none).  ``priority`` is the level of best effort
    of its I/O while it is not below its floor.
    """

    side: str
    account: str
    container: str
    method: str
    policy: int
    rate: float
    floor: float = 0.0
    ceiling: float = 0.0
    priority: int = NO_CLASS

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


@dataclass(frozen=True, slots=True)
class Shares(Message):
    """One node's part of what was divided in one round; all of it takes the place of what was before.

    ``term`` and ``number`` order the rounds: a greater term, or the same and a greater number, is newer.  ``newcomer``
    maps side → method → the rate that a flow not in ``rows`` begins with; where a method is missing, flows that are
    not in ``rows`` move as they like.  ``spares`` maps ``ip:port`` → unused part (0 to 1) of each object
    server's capacity to read, for the choice among replicas; of servers that are used up, the more the fewer wait.
    """

    node: str
    term: int
    number: int
    at: float
    rows: tuple[Share, ...] = ()
    newcomer: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    spares: Mapping[str, float] = field(default_factory=dict)

    binary: ClassVar[bool] = True
    row_types = {"rows": (Share, _SHARE_BOUNDS)}
    rates = ("newcomer", "spares")
