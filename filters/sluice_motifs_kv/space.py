"""Which values with motifs have their bytes, how many these are, and which go first: the byte limit of a database.

Only values with motifs count; others cannot be given up.  Of those that were given up the order is kept, too, so that
spare space is filled again from the most recent ones.  All of it is rebuilt by a scan of the metadata.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sluice_core.errors import CallerError
from sluice_motifs.replacement.registry import create_policy
from sluice_motifs.space.planner import Candidate, ContractionPlan, plan_refill
from sluice_motifs_kv.store import Change

#: Spare space is filled up to this part of the limit, so that what was just given up is not made again at once.
FILLED: Final = 0.9
#: Values given up that are looked at for one that fits.
_LOOKED_AT: Final = 64


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """:param limit: bytes; None: as many as there are
    :param used: bytes of values with motifs that are there
    :param expanded: how many values these are
    :param contracted: values that were given up
    :param contracted_bytes: bytes that these had
    :param hits: reads of values with motifs whose bytes were there
    :param expansions: such reads whose bytes were made, the first of a value included
    """

    limit: int | None
    used: int
    expanded: int
    contracted: int
    contracted_bytes: int
    hits: int
    expansions: int


class Space:
    """Counts; may be called from any thread.

    :param policy: keyword of a replacement policy
    :raises CallerError: when there is no such policy, or the limit is negative
    """

    def __init__(self, limit: int | None, policy: str) -> None:
        self._limit = _checked(limit)
        self._policy = create_policy(policy)
        self._changed = threading.Condition()
        self._slots: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._sizes = array("Q")
        self._free: list[int] = []
        #: slots of contracted values, the most recent one last
        self._contracted: OrderedDict[int, None] = OrderedDict()
        #: keys that are not made in advance
        self._excluded: set[bytes] = set()
        self._victim: int | None = None
        self._used = 0
        self._contracted_bytes = 0
        self._hits = 0
        self._expansions = 0
        self._closed = False

    @property
    def exceeded(self) -> bool:
        """Whether there are more bytes than the limit allows."""
        return self._limit is not None and self._used > self._limit

    def committed(self, change: Change) -> None:
        """A key was written or deleted."""
        with self._changed:
            self._forget(change.key)
            entry = change.entry
            if entry is None or not entry.contracted:
                self._excluded.discard(change.key)
            if entry is not None and entry.record:
                self._insert(change.key, entry.size, entry.contracted)
            if self._contracted and self._room() > 0:
                self._changed.notify_all()

    def add(self, key: bytes, size: int, contracted: bool) -> None:
        """A value with motifs was found by a scan."""
        with self._changed:
            self._insert(key, size, contracted)

    def opened(self, key: bytes, made: bool) -> None:
        """A value with motifs was read; ``made``: its bytes were not there, or out of date."""
        with self._changed:
            self._expansions += made
            self._hits += not made
            self._excluded.discard(key)
            slot = self._slots.get(key, -1)
            if slot in self._policy:
                self._policy.touch(slot)
            elif slot in self._contracted:
                self._contracted.move_to_end(slot)

    def fits(self, size: int) -> bool:
        """Whether a value of so many bytes is ever stored."""
        return self._limit is None or size <= self._limit

    def set_limit(self, limit: int | None) -> None:
        """
        :raises CallerError: when it is negative
        """
        with self._changed:
            self._limit = _checked(limit)
            self._changed.notify_all()

    def next_victim(self) -> bytes | None:
        """The key whose bytes go next; None while the limit is kept, or nothing can go."""
        with self._changed:
            self._victim = None
            if self._limit is not None:
                self._victim = next(iter(ContractionPlan(self._used, self._limit, self._policy, self._candidate)), None)
            return None if self._victim is None else self._keys[self._victim]

    def postpone(self, key: bytes) -> None:
        """The bytes of a victim must stay: it is treated as if it had just been opened."""
        with self._changed:
            slot = self._slots.get(key, -1)
            if slot in self._policy:
                self._policy.touch(slot)

    def exclude(self, key: bytes) -> None:
        """Do not make these bytes in advance, until somebody has read them."""
        with self._changed:
            self._excluded.add(key)

    def wait_for_refill(self) -> bytes | None:
        """Wait until a contracted value fits into spare space, the most recent one first; None after :meth:`close`.

        A value is named once, until it was stored or read: whatever keeps it from being made may not go away.
        """
        with self._changed:
            while not self._closed:
                key = self._next_refill()
                if key is not None:
                    self._excluded.add(key)
                    return key
                self._changed.wait()
            return None

    def close(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def statistics(self) -> SpaceStatistics:
        """As they are now."""
        with self._changed:
            return SpaceStatistics(
                self._limit,
                self._used,
                len(self._policy),
                len(self._contracted),
                self._contracted_bytes,
                self._hits,
                self._expansions,
            )

    def _insert(self, key: bytes, size: int, contracted: bool) -> None:
        if not self._free:
            self._free.append(len(self._keys))
            self._keys.append(b"")
            self._sizes.append(0)
        slot = self._free.pop()
        self._slots[key] = slot
        self._keys[slot], self._sizes[slot] = key, size
        if contracted:
            self._contracted[slot] = None
            self._contracted_bytes += size
        else:
            self._policy.insert(slot)
            self._used += size

    def _forget(self, key: bytes) -> None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        if slot in self._contracted:
            del self._contracted[slot]
            self._contracted_bytes -= self._sizes[slot]
        else:
            self._used -= self._sizes[slot]
            if slot == self._victim:
                self._policy.evict(slot)
            else:
                self._policy.remove(slot)
        self._free.append(slot)

    def _candidate(self, slot: int) -> Candidate:
        return Candidate(self._sizes[slot], age=0.0)

    def _room(self) -> int:
        """Bytes that may be filled in advance."""
        return 0 if self._limit is None else int(self._limit * FILLED) - self._used

    def _next_refill(self) -> bytes | None:
        if self._room() <= 0:
            return None
        waiting = (slot for slot in reversed(self._contracted) if self._keys[slot] not in self._excluded)
        filled = self._used + self._room()
        slot = next(plan_refill(self._used, filled, islice(waiting, _LOOKED_AT), self._candidate), None)
        return None if slot is None else self._keys[slot]


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise CallerError(f"limit `{limit}` is negative, expected bytes, or None for no limit")
    return limit
