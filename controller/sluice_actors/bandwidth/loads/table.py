"""What the nodes told lately: where each flow's bytes and transfers are, smoothed over some seconds.

Messages come doubled, late, out of order, or not at all, and the clocks of nodes may be anywhere:

* An agent's messages are ordered by their number since its start.  What is not newer than what is known is refused;
  a start that lies before the known one counts once the known one has been silent for some seconds.
* How old a message is, is told by when it arrived here, on our monotonic clock.
* A node of which nothing is heard keeps its part for :data:`SILENT` seconds, unless ``bandwidth_gone`` knows better.
  One whose workers are gone loses it at once.

A share that followed the very last second would swing, so parts follow means over :data:`MEAN` seconds; where clients
pile up, that is too slow, and ``bandwidth_demand`` takes the last second with less force.

A thousand busy nodes tell of some hundred thousand places each second.  So there is no object for each: rows become
columns as they come, and a round puts the columns of all nodes beside each other (:class:`Table`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple, Self

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.decoder import Packed, Report, beginning
from sluice_actors.bandwidth.loads.flow_index import DEVICES, KINDS, Names, flows_of, is_sound, kind, sides_of
from sluice_actors.bandwidth.loads.flow_stats import LEFT, MEAN, Trace, Traces
from sluice_core.messages.bandwidth import SIDES, Flow, Load, MovedObject, NodeLoad
from sluice_core.messages.bounds import MOST

__all__ = ["HEARD", "LEFT", "MEAN", "SILENT", "Loads", "Node", "Report", "Table", "Trace"]

#: Seconds for which what a node told last is shown as what is.
HEARD: Final = 2.5
#: Seconds after which a node that says nothing is forgotten.
SILENT: Final = 30.0
#: Seconds of silence after which another start of an agent counts although its clock says that it was before.
_ANOTHER: Final = 3.0
#: Flows that are over are forgotten once there are more of them than this, and than of the others.
_OVER: Final = 10_000
#: A key and the numbers after it.
_KEY: Final = len(Load._fields) - 3
_NUMBERS: Final = (int, float)


@dataclass(slots=True)
class Rows:
    """What a node told of the last second, device by device: the number of each row, and its bytes."""

    numbers: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    moved: FloatArray = field(default_factory=lambda: np.empty(0))


class _Told(NamedTuple):
    """What rows say: the number of each, and (3, rows) bytes, transfers open, and those that wait."""

    numbers: IntArray
    values: FloatArray
    unsound: int = 0


@dataclass(slots=True)
class Node:
    """What is known of one node; ``arrived`` is when it last said something, on our monotonic clock.

    ``id`` is a number that no other node has.
    """

    name: str
    id: int
    started: float
    number: int
    arrived: float
    at: float = 0.0
    server: str = ""
    sides: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    traces: Traces = field(default_factory=Traces.empty)
    rows: Rows = field(default_factory=Rows)
    objects: tuple[MovedObject, ...] = ()

    def serves(self, side: str) -> bool:
        """True when workers of this side are here, or were a moment ago."""
        return side in self.here


class Loads:
    """All nodes, by name; ``policies`` maps the index of a storage policy, as text, to its name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.policies: dict[str, str] = {}
        self.names = Names()
        self._ids: dict[str, int] = {}
        #: Messages that were known already, or overtaken.
        self.repeated = 0
        #: Rows that made no sense.
        self.unsound = 0

    def feed(self, load: NodeLoad, arrived: float) -> bool:
        """Take what a node told; False when it is not news.

        :raises ValueError: when it cannot be unpacked; nothing was taken then
        """
        node = self.nodes.get(load.node)
        if node is not None and not _newer(load, node, arrived):
            self.repeated += 1
            return False
        told = self._read(load.rows)
        if node is None:
            number = self._ids.setdefault(load.node, len(self._ids))
            node = self.nodes[load.node] = Node(load.node, number, load.started, load.number, arrived)
            seconds = MEAN
        elif load.started != node.started:
            seconds = 1.0  # that nobody told of what moved is no sign that nothing did
        else:
            seconds = min(max(float(round(arrived - node.arrived)), 1.0), MEAN)
        node.started, node.number, node.arrived, node.at = load.started, load.number, arrived, load.at
        node.server, node.sides, node.objects = load.server, load.sides, load.objects
        node.capacity = _rates(load.capacity)
        self.policies.update(load.policies)
        self._trace(node, load, told, seconds)
        node.here = tuple(side for side in SIDES if side in node.sides or side in sides_of(node.traces.places))
        return True

    def trace(self, node: str, side: str, flow: Flow) -> Trace | None:
        """One flow on one side of one node."""
        return self.nodes[node].traces.find(self.names.place(side, flow))

    def forget(self, now: float) -> IntArray | None:
        """Forget the nodes of which nothing was heard for long, and flows that are over.

        :returns: what was each flow's number → its new one or -1, when they were numbered anew
        """
        for name in [name for name, node in self.nodes.items() if now - node.arrived > SILENT]:
            del self.nodes[name]
        if len(self.names.flows) <= _OVER:
            return None
        nodes = self.nodes.values()
        places = [*(node.traces.places for node in nodes), *(node.rows.numbers // DEVICES for node in nodes)]
        flows = np.unique(flows_of(np.concatenate(places))) if places else np.empty(0, dtype=np.intp)
        if len(self.names.flows) <= _OVER + 2 * len(flows):
            return None
        moved = self.names.keep(flows)
        for node in nodes:
            node.traces = Traces(renumbered(node.traces.places, KINDS, moved), node.traces.values)
            node.rows.numbers = renumbered(node.rows.numbers, KINDS * DEVICES, moved)
        return moved

    def _trace(self, node: Node, load: NodeLoad, told: _Told, seconds: float) -> None:
        """Bring the traces of a node up to its rows."""
        self.unsound += told.unsound
        if load.gone:
            node.traces, node.rows, node.objects = Traces.empty(), Rows(), ()
            return
        places, sums = _summed(told.numbers // DEVICES, told.values)
        sums[2] = np.minimum(sums[2], sums[1])
        node.rows = Rows(told.numbers, told.values[0])
        node.traces = node.traces.followed(places, sums, seconds, node.sides)

    def _read(self, rows: Sequence[Sequence[Any]]) -> _Told:
        """What rows say, without those that make no sense.

        :raises ValueError: when some cannot be unpacked
        """
        found = self._at_once(rows) if isinstance(rows, Packed) else None
        if found is not None:
            return found
        every = list(rows)
        try:
            return self._columns(every)
        except (TypeError, ValueError):
            sound = [row for row in every if _sound(row)]
            return self._columns(sound)._replace(unsound=len(every) - len(sound))

    def _at_once(self, rows: Packed) -> _Told | None:
        """The same of rows that are ours; None when they are to be looked at one by one.

        :raises ValueError: when some cannot be unpacked
        """
        values = rows.numbers()
        if values is None or not np.all((values >= 0) & (values <= MOST)):
            return None
        begins = rows.begins()
        numbers = list(map(self.names.begun.get, begins))
        if None in numbers:
            for place, number in enumerate(numbers):
                if number is None and not self._learnt(rows[place], begins[place]):
                    return None
            numbers = list(map(self.names.begun.get, begins))
        return _Told(np.array(numbers, dtype=np.intp), values)

    def _learnt(self, row: Sequence[Any], begins: bytes) -> bool:
        """Whether a row ``begins`` as it should and makes sense; it is known then."""
        side, account, container, method, policy, device, *_ = row
        key = side, account, container, method, policy, device
        try:
            if beginning(key) != begins:
                return False  # so the numbers may not be where we looked
            self.names.begun[begins] = self.names.row(key)
        except (TypeError, ValueError):
            return False
        return True

    def _columns(self, rows: Sequence[Sequence[Any]]) -> _Told:
        """What rows say that are unpacked.

        :raises ValueError: when some row makes no sense
        :raises TypeError: likewise
        """
        if not rows:
            return _Told(np.empty(0, dtype=np.intp), np.empty((3, 0)))
        columns = tuple(zip(*rows, strict=True))
        if not all(issubclass(one, _NUMBERS) for one in set(map(type, chain(*columns[_KEY:])))):
            raise TypeError("not a number")
        values = np.array(columns[_KEY:], dtype=np.float64)
        if not np.all((values >= 0) & (values <= MOST)):
            raise ValueError("not a rate")
        numbers = list(map(self.names.row, zip(*columns[:_KEY], strict=True)))
        return _Told(np.array(numbers, dtype=np.intp), values)


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of all nodes.

    ``nodes`` are sorted by name, ``ids`` are theirs; ``node`` says of each place where its node stands.
    """

    names: Names
    nodes: tuple[Node, ...]
    ids: IntArray
    node: IntArray
    traces: Traces
    _kinds: dict[tuple[str, str], IntArray] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, loads: Loads, without: Collection[str] = ()) -> Self:
        """As things stand, ``without`` some nodes."""
        known = (node for node in loads.nodes.values() if node.name not in without)
        nodes = tuple(sorted(known, key=lambda node: node.name))
        places = [node.traces.places for node in nodes]
        traces = Traces.empty()
        if nodes:
            traces = Traces(np.concatenate(places), np.concatenate([node.traces.values for node in nodes], axis=1))
        ids = np.array([node.id for node in nodes], dtype=np.intp)
        return cls(loads.names, nodes, ids, np.repeat(np.arange(len(nodes)), list(map(len, places))), traces)

    def kind(self, method: str, side: str) -> IntArray:
        """Which places are of this method and side."""
        found = self._kinds.get((method, side))
        if found is None:
            found = self._kinds[method, side] = np.flatnonzero(self.traces.places % KINDS == kind(method, side))
        return found

    def per_node(self, method: str, side: str, values: FloatArray) -> FloatArray:
        """(nodes,) sums of (places,) ``values``."""
        index = self.kind(method, side)
        return np.bincount(self.node[index], values[index], minlength=len(self.nodes)).astype(np.float64)

    def serving(self, side: str) -> IntArray:
        """Where the nodes stand that serve ``side``."""
        return np.array([place for place, node in enumerate(self.nodes) if node.serves(side)], dtype=np.intp)

    def spots(self, node: IntArray, places: IntArray) -> IntArray:
        """A number for each place on its node, the same in each round, as long as flows keep theirs."""
        return spots(self.ids[node], places)

    def spot(self, node: int, place: int) -> int:
        """The number of one."""
        return int(self.ids[node]) * _SPAN + place


#: Numbers of places are smaller.
_SPAN: Final = 2**40


def spots(ids: IntArray, places: IntArray) -> IntArray:
    """The same by nodes' ids."""
    return ids * _SPAN + places


def apart(spots: IntArray) -> tuple[IntArray, IntArray]:
    """Nodes' ids, and places."""
    return spots // _SPAN, spots % _SPAN


def renumbered(numbers: IntArray, span: int, moved: IntArray) -> IntArray:
    """Numbers whose flows got other ones; each flow has ``span`` of them."""
    return moved[numbers // span] * span + numbers % span


def _summed(places: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """The sums of (3, rows) ``values`` at each place; places are sorted."""
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[:, order]
    first = np.ones(len(places), dtype=bool)
    np.not_equal(places[1:], places[:-1], out=first[1:])
    if not first.all():
        begins = np.flatnonzero(first)
        places, values = places[begins], np.add.reduceat(values, begins, axis=1)
    return places, values


def _newer(load: NodeLoad, node: Node, arrived: float) -> bool:
    if load.started == node.started:
        return load.number > node.number
    return load.started > node.started or arrived - node.arrived > _ANOTHER


def _sound(row: Iterable[Any]) -> bool:
    *key, moved, opened, waiting = row
    try:
        numbers = all(isinstance(one, _NUMBERS) and 0 <= one <= MOST for one in (moved, opened, waiting))
        return numbers and is_sound(key)
    except (TypeError, ValueError):
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
