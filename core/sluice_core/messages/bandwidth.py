"""Bandwidth: flows, objectives, and the messages between agents and the dividing host.

A *flow* is the unit of limiting: the bytes that one tenant (or one of its containers, when an objective names it) moves
by one method under one storage policy.  Rates are bytes of client payload per second, counted once at the proxies; at
the object servers each copy counts.

What changes every second travels over the broker.  Each agent sends its :class:`NodeLoad`; one actor host allocates and
sends every node its :class:`Shares`.  The rates that a global controller computed reach that host as
:class:`ControllerRates`.  Documents for operators are in ``sluice_core.messages.bandwidth_report``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sluice_core.describe import BANDWIDTH, PROXY, STORAGE_NODE
from sluice_core.messages.base import MOST, MOST_RATE, NO_BOUND, Bounds, Message, PackedMessage
from sluice_core.messages.policies import Assignment

GET: Final = "GET"
PUT: Final = "PUT"
REPLICATION: Final = "REPLICATION"
METHODS: Final = (GET, PUT, REPLICATION)
#: The sides on which bytes are held back and counted.
SIDES: Final = (PROXY, STORAGE_NODE)

#: The parameters of ``SET bandwidth`` that are rates, by method: floor, ceiling, floor of each object server.
FLOORS: Final = {GET: "get_bw", PUT: "put_bw"}
CEILINGS: Final = {GET: "max_get_bw", PUT: "max_put_bw"}
NODE_FLOORS: Final = {GET: "node_get_bw"}
STORAGE_POLICY: Final = "storage_policy"
CLASS: Final = "class"
#: Priority class → level of best effort (Linux I/O class); level 0 is for flows below their floor.
CLASSES: Final[Mapping[str, int]] = {"gold": 1, "silver": 4, "bronze": 7}
#: Level of a flow without an objective.
NO_CLASS: Final = 4
#: The parameter of ``SET replication``.
MAX_REPLICATION: Final = "max_bw"
#: Index of a storage policy that is not known (yet).
ANY_POLICY: Final = -1
#: The account of replication, which moves the bytes of all accounts.
NO_ACCOUNT: Final = ""

#: Suffix, behind the path of the agent's snapshot, of the file with the :class:`Shares` of the machine's volumes, which
#: are on the side of proxies: ``container`` is the volume, GET its reads, PUT its writes.
VOLUME_SHARES_SUFFIX: Final = ".volume-shares"

#: Bounds of what is measured on the wire.
OBJECT_BOUNDS: Final[Bounds] = {"rate": (0.0, MOST)}
_LOAD_BOUNDS: Final[Bounds] = {"moved": (0.0, MOST), "open": (0.0, MOST), "waiting": (0.0, MOST)}
#: Rates of shares are negative for no bound, and slightly below 0 by rounding.
_SHARE_BOUNDS: Final[Bounds] = dict.fromkeys(("rate", "floor", "ceiling"), (NO_BOUND, MOST_RATE))


class Flow(NamedTuple):
    """The unit of limiting; ``policy`` is the storage policy's index, ``container`` mostly empty."""

    account: str
    method: str
    policy: int = 0
    container: str = ""

    @property
    def path(self) -> str:
        """``account`` or ``account/container``."""
        return f"{self.account}/{self.container}" if self.container else self.account


#: The flow of replication between storage nodes, of all storage policies.
REPLICATION_FLOW: Final = Flow(NO_ACCOUNT, REPLICATION)


@dataclass(frozen=True, slots=True)
class Objective(Message):
    """The floor and ceiling of one assignment of kind ``bandwidth`` for one method; rates in bytes per second, 0 for
    none.

    ``level`` is tenant or container, ``select`` name, group or all, ``name`` the path, the group's name, or empty.
    ``storage_policy`` is a name or an index as it was written, empty for all.  ``node_floor`` is the floor on each
    object server on which the flow is active.  ``side`` is where the flow is limited.  ``rank`` is
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
    """Return the level of best effort, 1 to 7, of a class's name or number."""
    text = str(name).lower()
    return CLASSES[text] if text in CLASSES else min(max(int(text), 1), 7)


def objectives(assignment: Assignment) -> Iterator[Objective]:
    """The objectives of an assignment of kind ``bandwidth``, one for each method that has a rate."""
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
    """The traffic of one flow on one side of one node, on one device, in the last second.

    ``device`` is empty at proxies.  ``moved`` is bytes of payload.  ``open`` is the mean number of transfers, and
    ``waiting`` the mean number that were held back (0 when none is open at the end of the second).
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
        """The flow that this row is about."""
        return Flow(self.account, self.method, self.policy, self.container)


class MovedObject(NamedTuple):
    """One object in transfer through an object server: ``rate`` in bytes per second, ``range`` such as ``0-end``.

    ``server`` is ``ip:port`` of that object server; it is not sent, :class:`NodeLoad` fills it in.
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
        """The fields that are sent."""
        return self[:-1]


#: Objects in one report of a node, the fastest first.
MOST_OBJECTS: Final = 200
#: Device, storage policy, account, name, method, range: the fields of a :class:`MovedObject` besides rate and server.
ObjectKey = tuple[str, int, str, str, str, str]
_RATE: Final = attrgetter("rate")


def fastest_objects(rates: Mapping[ObjectKey, float]) -> tuple[MovedObject, ...]:
    """Return at most :data:`MOST_OBJECTS` of the objects with these rates, the fastest first.

    Each method has an equal part of them if it has that many: uploads are reported beside faster downloads.
    """
    by_method: dict[str, list[MovedObject]] = {}
    for key, rate in rates.items():
        moved = MovedObject(*key, rate)
        by_method.setdefault(moved.method, []).append(moved)
    chosen: list[MovedObject] = []
    rest: list[MovedObject] = []
    part = MOST_OBJECTS // max(len(by_method), 1)
    for several in by_method.values():
        several.sort(key=_RATE, reverse=True)
        chosen += several[:part]
        rest += several[part:]
    chosen += sorted(rest, key=_RATE, reverse=True)[: MOST_OBJECTS - len(chosen)]
    return tuple(sorted(chosen, key=_RATE, reverse=True))


@dataclass(frozen=True, slots=True)
class NodeLoad(PackedMessage):
    """The traffic of one node's workers in one second.

    ``number`` counts the agent's messages since ``started`` (unix time), so that duplicates and overtaken messages are
    recognised.  ``server`` is ``ip:port`` of the node's object server; ``servers`` maps a device to another server's
    ``ip:port`` (where each device has a port of its own).  ``capacity`` maps a side to method → bytes per second as
    configured or calibrated; the dividing host estimates what is missing.  ``sides`` are those that workers serve here
    now; ``gone`` is true when there were workers and none is left.
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

    row_types = {"rows": (Load, _LOAD_BOUNDS), "objects": (MovedObject, OBJECT_BOUNDS)}
    rates = ("capacity",)

    def __post_init__(self) -> None:
        objects = (one._replace(server=self.servers.get(one.device, self.server)) for one in self.objects)
        object.__setattr__(self, "objects", tuple(objects))

    def to_data(self) -> dict[str, Any]:
        return {**super(NodeLoad, self).to_data(), "objects": [one.wire_row() for one in self.objects]}


class Share(NamedTuple):
    """The share of one flow on one side of one node, in bytes of payload at that side per second.

    A negative ``rate`` is no limit.  ``floor`` is the part of the flow's floor on this node.  ``ceiling`` is its limit
    here even when other flows leave their shares unused (0: none).  ``priority`` is the level of best effort of its I/O
    while it is not below its floor.
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
        """The flow that this row is about."""
        return Flow(self.account, self.method, self.policy, self.container)


@dataclass(frozen=True, slots=True)
class Shares(PackedMessage):
    """One node's part of one allocation round; it replaces the part of the round before.

    ``term`` and ``number`` order the rounds: a greater term, or the same and a greater number, is newer.  ``newcomer``
    maps side → method → the first rate of a flow that is not in ``rows``; flows of a missing method are not limited.
    ``spares`` maps ``ip:port`` → unused part (0 to 1) of each object server's capacity to read, for the choice among
    replicas; among servers without capacity left it is greater where fewer transfers wait.
    """

    node: str
    term: int
    number: int
    at: float
    rows: tuple[Share, ...] = ()
    newcomer: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    spares: Mapping[str, float] = field(default_factory=dict)

    row_types = {"rows": (Share, _SHARE_BOUNDS)}
    rates = ("newcomer", "spares")


#: Methods whose rates a controller may compute; replication has one cap, which is an assignment.
ALLOCATED_METHODS: Final = (GET, PUT)
#: Rates in one answer.
MOST_RATES: Final = 100_000
_BOUNDS: Final[Bounds] = {"rate": (0.0, MOST_RATE)}


class Rate(NamedTuple):
    """The rate of one flow on one node, in bytes of payload per second.

    ``storage_policy`` is the storage policy's index; ``container`` is empty except for flows that a policy of
    containers names (``sluice_core.messages.bandwidth.Flow``).
    """

    node: str
    account: str
    method: str
    rate: float
    storage_policy: int = 0
    container: str = ""

    @property
    def flow(self) -> Flow:
        """The flow with this rate."""
        return Flow(self.account, self.method, self.storage_policy, self.container)


@dataclass(frozen=True, slots=True)
class ControllerRates(PackedMessage):
    """One answer of a controller: all ``rows`` for ``methods``; flows without a row are not limited.

    :param term: of the ownership of the controller; the answer of a greater term is newer
    :param at: Unix time of the answer
    :param valid: seconds for which the answer holds after it arrived
    """

    controller: str
    term: int
    at: float
    valid: float
    methods: tuple[str, ...] = ()
    rows: tuple[Rate, ...] = ()

    row_types = {"rows": (Rate, _BOUNDS)}
