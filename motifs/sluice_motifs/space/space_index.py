"""The space and part of each item, updated by the item table's events, and sorted again when policies change.

Sums, orders and counts of all spaces follow from that.  One thread uses it.  It knows items as their events describe
them, since the table may be ahead.  Of an item it keeps 21 bytes, beside some 26 of its part and its replacement
policy.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from sluice_core.messages.elasticity import Membership
from sluice_motifs.items import ItemState
from sluice_motifs.space.part_items import PartItems
from sluice_motifs.space.space_items import SpaceItems

_NOWHERE: Final = 0
_UNKNOWN, _CONTRACTED, _EXPANDED = range(3)


class SpaceRules(Protocol):
    """The rules of policies for spaces."""

    def refresh(self) -> Hashable:
        """Read the policies again; return a value that differs from the last one when any of them changed."""

    def container(self, item: str) -> str:
        """A key shared by items that belong to the same space in any case."""

    def membership(self, container: str) -> Membership | None:
        """The space and the part of all items with this key; None when they belong to none."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A part of a space, as the place of items."""

    space: SpaceItems
    part: PartItems


class SpaceIndex:
    """All spaces and the items in them.

    :param name_of: the name of a slot
    :param window: seconds, and share of all seconds: as of ``ThrashingGuard``
    """

    def __init__(self, rules: SpaceRules, name_of: Callable[[int], str | None], window: float, share: float) -> None:
        self.spaces: dict[str, SpaceItems] = {}
        self._rules = rules
        self._name_of = name_of
        self._window = window
        self._share = share
        self._version: Hashable = None
        #: Places by number; items have the number.  The first one means no space.
        self._places: list[Place | None] = [None]
        self._numbers: dict[tuple[str, str], int] = {}
        self._memberships: dict[str, Membership | None] = {}
        self._place = array("I")
        self._number = array("I")
        self._written = array("I")
        self._sizes = array("q")
        self._states = bytearray()

    def place(self, slot: int) -> Place | None:
        """The place of an item; None when it is in no space."""
        return self._places[self._place[slot]] if slot < len(self._place) else None

    def place_of(self, space: SpaceItems, part: PartItems) -> Place | None:
        """A part of a space as a place."""
        number = self._numbers.get((space.rule.path, part.part.path))
        return None if number is None else self._places[number]

    def number(self, slot: int) -> int:
        """The number of an item in its part."""
        return self._number[slot]

    def state(self, slot: int) -> ItemState | None:
        """The state of an item by its last event; None when it was removed."""
        if slot >= len(self._states) or self._states[slot] == _UNKNOWN:
            return None
        return ItemState(self._sizes[slot], self._states[slot] == _EXPANDED)

    def age(self, slot: int, now: float) -> float:
        """Seconds since an item was written, expanded, or first seen."""
        return max(0.0, now - self._written[slot])

    def change(self, slot: int, name: str, after: ItemState | None, now: float, as_victim: bool = False) -> None:
        """Set the state of an item, None when it was removed.

        :param as_victim: whether it was contracted in its turn
        """
        before = self.state(slot)
        if before is not None and after is not None:
            self._change(slot, before, after, now, as_victim)
            return
        if before is not None:
            self._leave(slot, before)
            self._states[slot] = _UNKNOWN
        if after is not None:
            self._enter(slot, name, after, now)

    def update(self, now: float) -> None:
        """Read the policies, and move the items whose space has changed."""
        version = self._rules.refresh()
        if version == self._version:
            return
        self._version = version
        moved = self._learn()
        for slot in range(len(self._states) if moved else 0):
            state, name = self.state(slot), self._name_of(slot)
            if state is not None and name is not None and self._rules.container(name) in moved:
                written = self._written[slot]
                self._leave(slot, state)
                self._enter(slot, name, state, now)
                self._written[slot] = written
        used = {one.space.rule.path for one in self._places if one is not None and len(one.part)}
        for path in [path for path in self.spaces if path not in used]:
            self._forget(path)

    def _learn(self) -> set[str]:
        """Read the rules again and return the containers whose items belong elsewhere."""
        moved = set()
        for container, before in list(self._memberships.items()):
            after = self._memberships[container] = self._rules.membership(container)
            if _location(before) != _location(after):
                moved.add(container)
            elif after is not None and after != before:
                space = self.spaces[after.space.path]
                space.use_rule(after.space)
                space.use_part(after.part)
        return moved

    def _forget(self, path: str) -> None:
        del self.spaces[path]
        for key in [key for key in self._numbers if key[0] == path]:
            self._places[self._numbers.pop(key)] = None
        for container, one in list(self._memberships.items()):
            if one is not None and one.space.path == path:
                del self._memberships[container]

    def _find_place(self, name: str, now: float) -> int:
        container = self._rules.container(name)
        if container not in self._memberships:
            self._memberships[container] = self._rules.membership(container)
        member = self._memberships[container]
        if member is None:
            return _NOWHERE
        key = (member.space.path, member.part.path)
        number = self._numbers.get(key)
        if number is None:
            space = self.spaces.get(member.space.path)
            if space is None:
                space = SpaceItems(member.space, now, self._window, self._share)
                self.spaces[member.space.path] = space
            number = self._numbers[key] = len(self._places)
            self._places.append(Place(space, space.use_part(member.part)))
        return number

    def _enter(self, slot: int, name: str, state: ItemState, now: float) -> None:
        more = slot + 1 - len(self._states)
        if more > 0:
            for column in (self._place, self._number, self._written, self._sizes):
                column.extend([0] * more)
            self._states.extend(bytes(more))
        self._written[slot] = int(now)
        self._keep(slot, state)
        self._place[slot] = self._find_place(name, now)
        place = self.place(slot)
        if place is not None:
            self._number[slot] = place.part.add(slot, state)

    def _leave(self, slot: int, state: ItemState) -> None:
        place = self.place(slot)
        if place is not None:
            place.part.remove(self._number[slot], state)
            self._place[slot] = _NOWHERE

    def _change(self, slot: int, before: ItemState, after: ItemState, now: float, as_victim: bool) -> None:
        self._keep(slot, after)
        if after.expanded:
            self._written[slot] = int(now)
        place = self.place(slot)
        if place is not None:
            place.part.change(self._number[slot], before, after, as_victim)

    def _keep(self, slot: int, state: ItemState) -> None:
        self._sizes[slot] = state.size
        self._states[slot] = _EXPANDED if state.expanded else _CONTRACTED


def _location(member: Membership | None) -> tuple[str, str] | None:
    return None if member is None else (member.space.path, member.part.path)
