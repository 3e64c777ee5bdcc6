"""Numbers for flows, so that a round can be reckoned in arrays.

A *place* is a flow on one side, a *row* a place on one device, which is what nodes tell of.  The number of a place
says which method and side it is, that of a row which place:

* place = (flow × methods + method) × sides + side
* row = place × :data:`DEVICES` + device

A flow keeps its number until :meth:`Names.keep`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from sluice_actors.bandwidth.arrays import IntArray
from sluice_core.messages.bandwidth import METHODS, SIDES, Flow

#: Names of devices that may be known at a time.
DEVICES: Final = 2**20
_SIDES: Final = {side: number for number, side in enumerate(SIDES)}
_METHODS: Final = {method: number for number, method in enumerate(METHODS)}
#: Kinds of places: each method on each side.
KINDS: Final = len(METHODS) * len(SIDES)

#: Side, account, container, method, storage policy, device; as ``Load`` begins.
Key = tuple[str, str, str, str, int, str]


def kind(method: str, side: str) -> int:
    """What a place's number is, modulo :data:`KINDS`."""
    return _METHODS[method] * len(SIDES) + _SIDES[side]


def flows_of(places: IntArray) -> IntArray:
    """The numbers of their flows."""
    return places // KINDS


def sides_of(places: IntArray) -> tuple[str, ...]:
    """The sides that any of ``places`` is on."""
    return tuple(side for side, number in _SIDES.items() if (places % len(SIDES) == number).any())


class Names:
    """All flows and devices that were told of."""

    def __init__(self) -> None:
        #: By number.
        self.flows: list[Flow] = []
        self._numbers: dict[Flow, int] = {}
        self._devices: list[str] = []
        self._device_numbers: dict[str, int] = {}
        self._rows: dict[Key, int] = {}
        #: Numbers of rows by how they begin on the wire.
        self.begun: dict[bytes, int] = {}

    def number(self, flow: Flow) -> int:
        """The flow's, new when it has none."""
        known = self._numbers.get(flow)
        if known is None:
            known = self._numbers[flow] = len(self.flows)
            self.flows.append(flow)
        return known

    def place(self, side: str, flow: Flow) -> int:
        """The number of a flow's place."""
        return self.number(flow) * KINDS + kind(flow.method, side)

    def row(self, key: Key) -> int:
        """
        :raises ValueError: when there can be no such row
        :raises TypeError: likewise
        """
        known = self._rows.get(key)
        if known is None:
            side, account, container, method, policy, device = key
            if not is_sound(key):
                raise ValueError(f"no flow is `{key!r}`")
            place = self.place(side, Flow(account, method, policy, container))
            known = self._rows[key] = place * DEVICES + self._device(device)
        return known

    def key(self, row: int) -> Key:
        """What :meth:`row` was given."""
        place, device = divmod(row, DEVICES)
        flow = self.flows[place // KINDS]
        side = SIDES[place % len(SIDES)]
        return side, flow.account, flow.container, flow.method, flow.policy, self._devices[device]

    def keep(self, flows: IntArray) -> IntArray:
        """Forget all but ``flows`` (sorted); what was each flow's number → its new one, in the same order, or -1."""
        moved = np.full(len(self.flows), -1, dtype=np.intp)
        moved[flows] = np.arange(len(flows))
        self.flows = [self.flows[number] for number in flows.tolist()]
        self._numbers = {flow: number for number, flow in enumerate(self.flows)}
        self._rows.clear()
        self.begun.clear()
        return moved

    def _device(self, name: str) -> int:
        known = self._device_numbers.get(name)
        if known is None:
            if len(self._devices) >= DEVICES:
                raise ValueError(f"more than {DEVICES} devices")
            known = self._device_numbers[name] = len(self._devices)
            self._devices.append(name)
        return known


def is_sound(key: Iterable[Any]) -> bool:
    """True for what can be a :data:`Key`."""
    side, account, container, method, policy, device = key
    return (
        side in SIDES
        and method in METHODS
        and isinstance(policy, int)
        and isinstance(account, str)
        and isinstance(container, str)
        and isinstance(device, str)
    )
