"""The contract of global controllers: code that decides for the whole cluster, based on its measurements.

A policy applies to one target; a controller sees all of them.  It is a class with one method::

    class Busy(Controller):
        info = ControllerInfo("busy", metrics=("PUTS_SEC",), help="compresses what the busiest tenant uploads")

        def compute_assignments(self, observation: Observation) -> Iterable[Assign]:
            values = observation.values("PUTS_SEC", "tenant")
            if values:
                yield Assign(max(values, key=values.__getitem__), "compression", {"engine": "zstd"})

One actor host of the cluster calls it once each ``info.period`` seconds, in a process of its own
(``sluice_actors.controllers.manager``).  It answers with *all* assignments and rates that shall be in force for this
controller.  The host compares the answer with the present state and writes the difference; an unchanged answer writes
nothing.  A controller that raises, or takes longer than ten seconds and its period, changes nothing: its last
assignments stay, and the failure is shown.  The attributes of the controller are lost when another host takes over or
its code is replaced.

A controller whose ``info`` sets ``bandwidth`` receives flows, their parts on devices, and the capacity of nodes, of the
last second.  A controller that ``allocates`` a method also answers with a :class:`Rate` for each flow and node; while
these answers arrive, Sluice does not allocate that method itself.  Rates change every second: they travel over the
broker and are never assignments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from sluice_core.describe import Scalar
from sluice_core.messages.bandwidth import Rate as Rate
from sluice_core.messages.base import Message, PackedMessage


@dataclass(frozen=True, slots=True)
class ControllerInfo:
    """How a controller describes itself: ``name`` in lower case, the ``metrics`` it wants to see.

    ``period`` in seconds between two calls, at least one.  ``bandwidth`` is true when the controller receives
    bandwidth; ``allocates`` are the methods (``GET``, ``PUT``) whose rates it computes, which implies that.
    """

    name: str
    metrics: tuple[str, ...] = ()
    period: float = 1.0
    help: str = ""
    bandwidth: bool = False
    allocates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assign(Message):
    """One action that shall be in force: ``SET keyword WITH params ON place`` for ``target``.

    ``target`` is ``account[/container[/object]]`` or empty for the whole cluster; ``place`` is ``proxy``,
    ``storage_node``, or empty for the default place of the keyword.
    """

    target: str
    keyword: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = ""
    verb: str = "set"


class FlowState(NamedTuple):
    """A flow in the last second: the bytes of one tenant by one method under one storage policy (its index).

    Rates are bytes of client payload per second.  ``floor`` is the floor of its SLOs and policies, 0 for none;
    ``ceiling`` is its upper limit, 0 for none; ``share`` is its present limit, negative for none.  ``waiting`` is the
    mean number of transfers that are held back; ``active`` is false when the flow moves no bytes.
    """

    account: str
    container: str
    method: str
    storage_policy: int
    floor: float
    ceiling: float
    measured: float
    waiting: float
    share: float
    active: bool


class FlowPart(NamedTuple):
    """The traffic of one flow on one device of one node, and its ``share`` there (negative for no limit).

    ``side`` is ``proxy`` or ``storage_node``; ``device`` is empty at proxies.
    """

    node: str
    side: str
    device: str
    account: str
    container: str
    method: str
    storage_policy: int
    measured: float
    share: float


class NodeCapacity(NamedTuple):
    """The capacity of one side of a node for one method, in bytes per second, 0 if unknown, and its present traffic."""

    node: str
    side: str
    method: str
    capacity: float
    measured: float


@dataclass(frozen=True, slots=True)
class Observation(PackedMessage):
    """The values of metrics, and the bandwidth, at one moment.

    ``at`` is the unix second at which the newest complete window began.  ``metrics`` maps a metric to granularity →
    path → value in the metric's unit, of its newest window that is not older than three of its periods; targets without
    traffic are missing.  ``nodes`` maps a node to its agent's report: ``state``, ``epoch``, ``workers``.  ``flows``,
    ``parts`` and ``capacities`` are of the last second; of a larger cluster they hold the busiest 10,000, 4,000 and
    10,000.  They are empty unless the controller sets ``bandwidth``.
    ``sides`` maps a method to the side where its bytes are held back: the side whose nodes rates are for.
    """

    at: float
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    flows: tuple[FlowState, ...] = ()
    parts: tuple[FlowPart, ...] = ()
    capacities: tuple[NodeCapacity, ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)

    row_types = {"flows": (FlowState, {}), "parts": (FlowPart, {}), "capacities": (NodeCapacity, {})}

    def values(self, metric: str, granularity: str = "tenant") -> Mapping[str, float]:
        """Return path → value; empty when the metric has no values."""
        return self.metrics.get(metric, {}).get(granularity, {})


class Controller:
    """Base of all global controllers; it uses no metric and no bandwidth."""

    info: ClassVar[ControllerInfo]

    def compute_assignments(self, observation: Observation) -> Iterable[Assign | Rate]:
        """Return everything that shall be in force now for this controller."""
        return ()
