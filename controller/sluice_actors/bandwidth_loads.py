"""What the nodes told lately: where each flow's bytes and transfers are, smoothed over some seconds.

Messages come doubled, late, out of order, or not at all, and the clocks of nodes may be anywhere:

* An agent's messages are ordered by their number since its start.  What is not newer than what is known is refused;
  a start that lies before the known one counts once the known one has been silent for some seconds.
* How old a message is, is told by when it arrived here, on our monotonic clock.
* A node of which nothing is heard keeps its part for :data:`SILENT` seconds.  One whose workers are gone loses it at
  once.

A share that followed the very last second would swing, so parts follow means over :data:`MEAN` seconds; where clients
pile up, that is too slow, and ``bandwidth_demand`` takes the last second with less force.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_core.bandwidth import METHODS, SIDES, Flow, Load, MovedObject, NodeLoad

#: Seconds over which bytes and transfers are averaged, exponentially.
MEAN: Final = 4.0
#: Seconds after which a node that says nothing is forgotten.
SILENT: Final = 30.0
#: Seconds after which a place where a flow has no transfer any more is not one of its places.
LEFT: Final = 3.0
#: Seconds of silence after which another start of an agent counts although its clock says that it was before.
_ANOTHER: Final = 3.0

Place = tuple[str, Flow]


@dataclass(slots=True)
class Trace:
    """One flow on one side of one node.

    ``moved``, ``open`` and ``waiting`` as of the last second, ``bytes``, ``transfers`` and ``held`` are their means,
    ``idle`` how many seconds there was no transfer, ``devices`` what moved on each in the last second.
    """

    moved: float = 0.0
    open: float = 0.0
    waiting: float = 0.0
    bytes: float = 0.0
    transfers: float = 0.0
    held: float = 0.0
    idle: float = 0.0
    devices: dict[str, float] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """True when something moved or was open in the last second."""
        return self.moved > 0 or self.open > 0

    @property
    def presence(self) -> float:
        """1 while there are transfers, less and less when there are none any more."""
        return max(1.0 - self.idle / LEFT, 0.0)

    def put(self, moved: float, open: float, waiting: float, part: float, seconds: float) -> None:  # noqa: A002
        """Take another second; ``part`` is what it changes of the means, ``seconds`` how many it stands for."""
        self.moved, self.open, self.waiting = moved, open, min(waiting, open)
        self.bytes += part * (moved - self.bytes)
        self.transfers += part * (open - self.transfers)
        self.held += part * (self.waiting - self.held)
        self.idle = 0.0 if self.active else self.idle + seconds


@dataclass(slots=True)
class Node:
    """What is known of one node; ``arrived`` is when it last said something, on our monotonic clock."""

    name: str
    started: float
    number: int
    arrived: float
    at: float = 0.0
    server: str = ""
    sides: tuple[str, ...] = ()
    capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    traces: dict[Place, Trace] = field(default_factory=dict)
    rows: tuple[Load, ...] = ()
    objects: tuple[MovedObject, ...] = ()

    def serves(self, side: str) -> bool:
        """True when workers of this side are here, or were a moment ago."""
        return side in self.sides or any(place[0] == side for place in self.traces)


class Loads:
    """All nodes, by name; ``policies`` maps the index of a storage policy, as text, to its name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.policies: dict[str, str] = {}
        #: Messages that were known already, or overtaken.
        self.repeated = 0
        #: Rows that made no sense.
        self.unsound = 0

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Take what a node told; False when it is not news."""
        node = self.nodes.get(load.node)
        if node is None:
            node = self.nodes[load.node] = Node(load.node, load.started, load.number, arrived)
            seconds = MEAN
        elif not _newer(load, node, arrived):
            self.repeated += 1
            return False
        else:
            seconds = min(max(float(round(arrived - node.arrived)), 1.0), MEAN)
        node.started, node.number, node.arrived, node.at = load.started, load.number, arrived, load.at
        node.server, node.sides, node.objects = load.server, load.sides, load.objects
        node.capacity = _rates(load.capacity)
        node.rows = tuple(row for row in load.rows if _sound(row))
        self.unsound += len(load.rows) - len(node.rows)
        self.policies.update(load.policies)
        if load.gone:
            node.traces.clear()
            node.rows = node.objects = ()
        else:
            _trace(node, seconds)
        return True

    def forget(self, now: float) -> None:
        """Forget the nodes of which nothing was heard for long."""
        for name in [name for name, node in self.nodes.items() if now - node.arrived > SILENT]:
            del self.nodes[name]


def _newer(load: NodeLoad, node: Node, arrived: float) -> bool:
    if load.started == node.started:
        return load.number > node.number
    return load.started > node.started or arrived - node.arrived > _ANOTHER


def _sound(row: Load) -> bool:
    side, account, container, method, policy, device, moved, opened, waiting = row
    try:
        return (
            0 <= moved < math.inf
            and 0 <= opened < math.inf
            and 0 <= waiting < math.inf
            and side in SIDES
            and method in METHODS
            and isinstance(policy, int)
            and isinstance(account, str)
            and isinstance(container, str)
            and isinstance(device, str)
        )
    except TypeError:
        return False


def _rates(capacity: Any) -> dict[str, dict[str, float]]:
    """Side → method → bytes per second, of what can be."""
    found: dict[str, dict[str, float]] = {}
    for side in SIDES:
        rates = capacity.get(side) if isinstance(capacity, Mapping) else None
        for method, rate in rates.items() if isinstance(rates, Mapping) else ():
            if isinstance(rate, int | float) and math.isfinite(rate) and rate > 0:
                found.setdefault(side, {})[method] = float(rate)
    return found


def _trace(node: Node, seconds: float) -> None:
    """Bring the traces of a node up to its rows."""
    part = 1.0 - math.exp(-seconds / MEAN)
    sums = _sums(node.rows)
    for place, (moved, opened, waiting, devices) in sums.items():
        trace = node.traces.get(place)
        if trace is None:
            trace = node.traces[place] = Trace()
            trace.put(moved, opened, waiting, 1.0, seconds)
        else:
            trace.put(moved, opened, waiting, part, seconds)
        trace.devices = devices
    for place in node.traces.keys() - sums.keys():
        trace = node.traces[place]
        trace.put(0.0, 0.0, 0.0, part, seconds)
        trace.devices = {}
        if trace.idle >= LEFT or (node.sides and place[0] not in node.sides):
            del node.traces[place]


def _sums(rows: Iterable[Load]) -> dict[Place, tuple[float, float, float, dict[str, float]]]:
    """Rows of one flow on several devices, added up."""
    sums: dict[Place, tuple[float, float, float, dict[str, float]]] = {}
    for side, account, container, method, policy, device, moved, opened, waiting in rows:
        place = side, Flow(account, method, policy, container)
        known = sums.get(place)
        if known is None:
            sums[place] = (moved, opened, waiting, {device: moved})
        else:
            devices = known[3]
            devices[device] = devices.get(device, 0.0) + moved
            sums[place] = (known[0] + moved, known[1] + opened, known[2] + waiting, devices)
    return sums
