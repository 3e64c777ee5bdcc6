"""Keeping the items of a mount within a target size: a thread contracts them in the order of a replacement policy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from sluice_core.errors import CallerError, SluiceError
from sluice_motifs.replacement.registry import create_policy
from sluice_motifs.space.ledger import SpaceItem, SpaceLedger, SpaceUsage
from sluice_motifs.space.planner import Candidate, ContractionPlan

log = logging.getLogger(__name__)

#: Items of one plan; then it is planned anew.
_AT_ONCE: Final = 64
#: Seconds until what could not be contracted is tried again.
_TRY_AGAIN: Final = 2.0
#: The ledger's name of the only space.
_SPACE: Final = ""


class SpaceControl:
    """The target size of one mount; :meth:`start` and :meth:`stop` it.

    :param target: plain bytes of expanded items; None for any number
    :param policy: keyword of a replacement policy
    :param contract: contracts an item; False when its bytes must stay for now
    :raises CallerError: when there is no such policy, or the target is negative
    """

    def __init__(self, target: int | None, policy: str, contract: Callable[[str], bool]) -> None:
        if target is not None and target < 0:
            raise CallerError(f"target size `{target}` is negative, expected at least 0 bytes")
        self._target = target
        self._policy = create_policy(policy)
        self._contract = contract
        self._ledger = SpaceLedger()
        self._items: dict[str, SpaceItem] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="motif contraction", daemon=True)

    @property
    def usage(self) -> SpaceUsage:
        """Bytes and items by their state."""
        return self._ledger.usage(_SPACE)

    def start(self) -> None:
        """Begin to contract what is too much."""
        if self._target is not None:
            self._thread.start()

    def stop(self) -> None:
        """Wait for the contraction that is under way, and begin no other."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def put(self, name: str, size: int, expanded: bool) -> None:
        """Note an item, or what became of it."""
        with self._changed:
            old = self._items.get(name)
            if old is not None and (old.size, old.expanded) == (size, expanded):
                return
            self.remove(name)
            slot = self._free.pop() if self._free else len(self._names)
            if slot == len(self._names):
                self._names.append("")
            self._names[slot] = name
            self._items[name] = item = SpaceItem(slot, _SPACE, size, expanded)
            self._ledger.add(item)
            if expanded:
                self._policy.insert(slot)
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """It is no item any more."""
        with self._changed:
            item = self._items.pop(name, None)
            if item is not None:
                self._ledger.remove(item)
                if item.expanded:
                    self._policy.remove(item.slot)
                self._free.append(item.slot)

    def touch(self, name: str) -> None:
        """An item was opened, or is not to be contracted now."""
        with self._changed:
            item = self._items.get(name)
            if item is not None and item.expanded:
                self._policy.touch(item.slot)

    def _exceeded(self) -> bool:
        return self._target is not None and self.usage.expanded_bytes > self._target

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._exceeded())
                if self._closed:
                    return
                victims = self._victims()
            contracted = [name for name in victims if not self._closed and self._try(name)]
            with self._changed:
                if not contracted and not self._closed:
                    self._changed.wait(_TRY_AGAIN)

    def _victims(self) -> list[str]:
        plan = ContractionPlan(self.usage.expanded_bytes, self._target or 0, self._policy, self._candidate)
        return [self._names[slot] for _, slot in zip(range(_AT_ONCE), plan, strict=False)]

    def _candidate(self, slot: int) -> Candidate:
        return Candidate(self._items[self._names[slot]].size, age=0.0)

    def _try(self, name: str) -> bool:
        try:
            contracted = self._contract(name)
        except SluiceError as error:
            log.debug("%s", error)
            contracted = False
        if not contracted:
            self.touch(name)
        return contracted
