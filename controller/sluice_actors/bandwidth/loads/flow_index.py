"""Numbers for flows, so that a round is computed in arrays.

* A *flow-side* is a flow on one side of the cluster: (flow × methods + method) × sides + side.
* A *row* is a flow-side on one device, as nodes report it: flow-side × :data:`DEVICES` + device.
* A *flow-node* is a flow-side on one node; its key is the node's id × 2**40 + flow-side.

A flow keeps its number until :meth:`FlowIndex.keep`.  :class:`FlowNodeValues` holds a number for each flow-node that is
remembered from one round to the next, such as the rate assigned last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_core.messages.bandwidth import METHODS, SIDES, Flow

#: The maximum number of device names that are known at a time.
DEVICES: Final = 2**20
#: Flow-sides that each flow has: every method on every side.
METHOD_SIDES: Final = len(METHODS) * len(SIDES)
#: Every flow-side is smaller than this.
_FLOW_SIDES: Final = 2**40

_SIDES: Final = {side: number for number, side in enumerate(SIDES)}
_METHODS: Final = {method: number for number, method in enumerate(METHODS)}

#: Side, account, container, method, storage policy, device; as ``Load`` begins.
Key = tuple[str, str, str, str, int, str]


def method_side(method: str, side: str) -> int:
    """The flow-sides of this method and side, modulo :data:`METHOD_SIDES`."""
    return _METHODS[method] * len(SIDES) + _SIDES[side]


def flow_numbers(flow_sides: IntArray) -> IntArray:
    """The numbers of the flows of ``flow_sides``."""
    return flow_sides // METHOD_SIDES


def sides_in(flow_sides: IntArray) -> tuple[str, ...]:
    """The sides that any of ``flow_sides`` is on."""
    return tuple(side for side, number in _SIDES.items() if (flow_sides % len(SIDES) == number).any())


def flow_node_keys(ids: IntArray, flow_sides: IntArray) -> IntArray:
    """The keys of flow-nodes; :func:`split_keys` is the inverse."""
    return ids * _FLOW_SIDES + flow_sides


def split_keys(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Ids of nodes, and flow-sides, of the keys of flow-nodes."""
    return keys // _FLOW_SIDES, keys % _FLOW_SIDES


def renumber(numbers: IntArray, span: int, moved: IntArray) -> IntArray:
    """Flow-sides or rows after :meth:`FlowIndex.keep`.

    :param span: how many of these numbers each flow has
    :param moved: (flows,) old number of a flow → new one
    """
    return moved[numbers // span] * span + numbers % span


class FlowIndex:
    """All flows and devices that nodes reported."""

    def __init__(self) -> None:
        #: Position = number.
        self.flows: list[Flow] = []
        self._numbers: dict[Flow, int] = {}
        self._devices: list[str] = []
        self._device_numbers: dict[str, int] = {}
        self._rows: dict[Key, int] = {}
        #: Rows by the bytes that they begin with on the wire.
        self.rows_by_prefix: dict[bytes, int] = {}

    def number(self, flow: Flow) -> int:
        """The number of ``flow``, a new one if it has none."""
        known = self._numbers.get(flow)
        if known is None:
            known = self._numbers[flow] = len(self.flows)
            self.flows.append(flow)
        return known

    def flow_side(self, side: str, flow: Flow) -> int:
        """The number of ``flow`` on ``side``."""
        return self.number(flow) * METHOD_SIDES + method_side(flow.method, side)

    def row(self, key: Key) -> int:
        """The number of a row, a new one if it has none.

        :raises ValueError: when ``key`` is not valid
        :raises TypeError: likewise
        """
        known = self._rows.get(key)
        if known is None:
            side, account, container, method, policy, device = key
            if not is_valid_key(key):
                raise ValueError(f"no flow is `{key!r}`")
            flow_side = self.flow_side(side, Flow(account, method, policy, container))
            known = self._rows[key] = flow_side * DEVICES + self._device(device)
        return known

    def key(self, row: int) -> Key:
        """The inverse of :meth:`row`."""
        flow_side, device = divmod(row, DEVICES)
        flow = self.flows[flow_side // METHOD_SIDES]
        side = SIDES[flow_side % len(SIDES)]
        return side, flow.account, flow.container, flow.method, flow.policy, self._devices[device]

    def keep(self, flows: IntArray) -> IntArray:
        """Forget all flows but ``flows``, and number these anew.

        :param flows: sorted numbers; their order stays
        :returns: (flows,) old number of each flow → new one, -1 for those that are forgotten
        """
        moved = np.full(len(self.flows), -1, dtype=np.intp)
        moved[flows] = np.arange(len(flows))
        self.flows = [self.flows[number] for number in flows.tolist()]
        self._numbers = {flow: number for number, flow in enumerate(self.flows)}
        self._rows.clear()
        self.rows_by_prefix.clear()
        return moved

    def _device(self, name: str) -> int:
        known = self._device_numbers.get(name)
        if known is None:
            if len(self._devices) >= DEVICES:
                raise ValueError(f"more than {DEVICES} devices")
            known = self._device_numbers[name] = len(self._devices)
            self._devices.append(name)
        return known


def is_valid_key(key: Iterable[Any]) -> bool:
    """True if ``key`` has the form of a :data:`Key`."""
    side, account, container, method, policy, device = key
    return (
        side in SIDES
        and method in METHODS
        and isinstance(policy, int)
        and all(isinstance(text, str) for text in (account, container, device))
    )


@dataclass(slots=True)
class FlowNodeValues:
    """A map in two arrays: ``keys`` of flow-nodes (:func:`flow_node_keys`), sorted, and the value of each."""

    keys: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_unsorted(cls, keys: IntArray, values: FloatArray) -> FlowNodeValues:
        """Build from keys in any order, each of them once."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __len__(self) -> int:
        return len(self.keys)

    def get(self, keys: IntArray, missing: float) -> FloatArray:
        """The value of each of ``keys``, or ``missing``."""
        if not len(self.keys):
            return np.full(len(keys), missing)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.values[at], missing)

    def renumber(self, moved: IntArray) -> FlowNodeValues:
        """The same values after ``FlowIndex.keep``, which returned ``moved``."""
        ids, flow_sides = split_keys(self.keys)
        stay = moved[flow_sides // METHOD_SIDES] >= 0
        return FlowNodeValues(
            flow_node_keys(ids[stay], renumber(flow_sides[stay], METHOD_SIDES, moved)), self.values[stay]
        )
