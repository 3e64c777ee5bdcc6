"""Plain bytes of the items of each space, kept by changes and rebuilt while changes go on.

Theory of operation

* The ledger has sums alone.  Whoever changes an item says what it was and what it is; a space without items is
  forgotten.
* Sums may be wrong: a process has just begun, or died between a change and its report.  So they are rebuilt: a scan
  yields all items, in pieces, in any order, and takes as long as it takes; meanwhile the old sums serve and are
  changed.  A change that does not fit wrong sums leaves no negative ones, and shows as ``drifted``.
* A rebuild is a second version of the sums.  It keeps a byte for each slot: whether the new sums contain the item
  already.  A scanned item is added unless they do.  A change of an item that they contain is applied to them as it is;
  of one that they do not, only what it is now is added, and the scan, which may have read the item before or after its
  change, passes over it.
* So each item is contained once, as it is now, on one condition: a change is reported before the scan can yield what
  it made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from sluice_core.errors import Conflict
from sluice_motifs.replacement.api import grown


class SpaceItem(NamedTuple):
    """An item as it is counted.

    :param slot: its place in the item table; used again after it was removed
    :param space: a container, a tenant, a member of a group: whatever has a size of its own
    :param size: plain bytes
    :param expanded: whether these are stored
    """

    slot: int
    space: str
    size: int
    expanded: bool


@dataclass(frozen=True, slots=True)
class SpaceUsage:
    """Plain bytes and number of the items of a space, by their state."""

    expanded_bytes: int = 0
    contracted_bytes: int = 0
    expanded_items: int = 0
    contracted_items: int = 0


class SpaceLedger:
    """The sums of all spaces; begins with none."""

    def __init__(self) -> None:
        self._sums = _Sums()
        self._rebuild: LedgerRebuild | None = None

    @property
    def drifted(self) -> bool:
        """Whether an item left that its space did not hold, so that a rebuild is due."""
        return self._sums.drifted

    def usage(self, space: str) -> SpaceUsage:
        """What a space holds; nothing when nobody heard of it."""
        return self._sums.spaces.get(space, SpaceUsage())

    def spaces(self) -> tuple[str, ...]:
        """Those that have items."""
        return tuple(self._sums.spaces)

    def add(self, item: SpaceItem) -> None:
        """An item is new.

        :raises ValueError: when its size is negative
        """
        _check(item)
        self._sums.add(item)
        if self._rebuild is not None:
            self._rebuild.added(item)

    def remove(self, item: SpaceItem) -> None:
        """An item is gone.

        :raises ValueError: when its size is negative
        """
        _check(item)
        self._sums.remove(item)
        if self._rebuild is not None:
            self._rebuild.removed(item)

    def change(self, old: SpaceItem, new: SpaceItem) -> None:
        """An item was contracted, expanded, overwritten or moved to another space.

        :raises ValueError: when these are two items, or a size is negative
        """
        _check(old)
        _check(new)
        if old.slot != new.slot:
            raise ValueError(f"slot `{old.slot}` became slot `{new.slot}`, expected the same item")
        self.remove(old)
        self.add(new)

    def rebuild(self) -> LedgerRebuild:
        """Begin to count all items anew; a rebuild that is not finished is given up."""
        self._rebuild = LedgerRebuild(self)
        return self._rebuild

    def current(self, rebuild: LedgerRebuild) -> bool:
        """Whether it is the last one that was begun, and not finished."""
        return self._rebuild is rebuild

    def replace(self, sums: _Sums) -> None:
        """Take over what a rebuild has counted."""
        self._sums, self._rebuild = sums, None


class LedgerRebuild:
    """One count of all items: ``count`` for each piece of the scan, then ``finish``."""

    def __init__(self, ledger: SpaceLedger) -> None:
        self._ledger = ledger
        self._sums = _Sums()
        self._contained = bytearray()

    def count(self, items: Iterable[SpaceItem]) -> None:
        """A piece of the scan.

        :raises Conflict: when another rebuild was begun meanwhile, or this one is finished
        :raises ValueError: when a size is negative
        """
        self._check_current()
        for item in items:
            _check(item)
            if not self._mark(item.slot):
                self._sums.add(item)

    def finish(self) -> None:
        """The scan is complete: what it counted replaces what the ledger had.

        :raises Conflict: when another rebuild was begun meanwhile, or this one is finished
        """
        self._check_current()
        self._ledger.replace(self._sums)

    def added(self, item: SpaceItem) -> None:
        """The ledger calls it for an item that is new, or is now as it is given."""
        self._mark(item.slot)
        self._sums.add(item)

    def removed(self, item: SpaceItem) -> None:
        """The ledger calls it for an item that is gone, or was as it is given."""
        if self._mark(item.slot):
            self._sums.remove(item)

    def _mark(self, slot: int) -> int:
        """Whether the sums contained a slot, before the scan or a change decided it now."""
        if slot >= len(self._contained):
            self._contained.extend(bytes(grown(len(self._contained), slot)))
        found, self._contained[slot] = self._contained[slot], 1
        return found

    def _check_current(self) -> None:
        if not self._ledger.current(self):
            raise Conflict("this rebuild of the ledger is over, expected the one that was begun last")


class _Sums:
    """Usage by space."""

    def __init__(self) -> None:
        self.spaces: dict[str, SpaceUsage] = {}
        self.drifted = False

    def add(self, item: SpaceItem) -> None:
        self._apply(item, item.size, 1)

    def remove(self, item: SpaceItem) -> None:
        self._apply(item, -item.size, -1)

    def _apply(self, item: SpaceItem, size: int, items: int) -> None:
        before = self.spaces.get(item.space, SpaceUsage())
        if item.expanded:
            size, items = before.expanded_bytes + size, before.expanded_items + items
            after = replace(before, expanded_bytes=max(size, 0), expanded_items=max(items, 0))
        else:
            size, items = before.contracted_bytes + size, before.contracted_items + items
            after = replace(before, contracted_bytes=max(size, 0), contracted_items=max(items, 0))
        self.drifted = self.drifted or size < 0 or items < 0
        if after.expanded_items or after.contracted_items:
            self.spaces[item.space] = after
        else:
            self.spaces.pop(item.space, None)


def _check(item: SpaceItem) -> None:
    if item.size < 0:
        raise ValueError(f"item `{item.slot}` has {item.size} bytes, expected at least 0")
