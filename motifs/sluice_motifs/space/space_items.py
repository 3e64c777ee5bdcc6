"""One space: its rule, its parts, its limit of thrashing, and the counts of its status."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from sluice_core.messages.elasticity import Space, SpacePart
from sluice_motif_control.messages import SpaceStatus
from sluice_motifs.space.part_items import PartItems, SpaceUsage
from sluice_motifs.space.planner import Member, partition
from sluice_motifs.space.thrashing import ThrashingGuard

KEPT: Final = "kept"
CONTRACTING: Final = "contracting"
FILLING: Final = "filling"
ABOVE: Final = "above"
THRASHING: Final = "thrashing"
SUSPENDED: Final = "suspended"


class RecentCounts:
    """Sums of values of the last ``buckets`` times ``width`` seconds."""

    def __init__(self, width: float, buckets: int, values: int) -> None:
        self._width = width
        self._buckets = buckets
        self._values = values
        self._ring: deque[tuple[int, list[float]]] = deque()

    @property
    def seconds(self) -> float:
        """The time over which values are summed."""
        return self._width * self._buckets

    def add(self, now: float, *values: float) -> None:
        """Add to the present bucket."""
        number = int(now // self._width)
        if not self._ring or self._ring[-1][0] != number:
            self._ring.append((number, [0.0] * self._values))
            self._forget(number)
        present = self._ring[-1][1]
        for place, value in enumerate(values):
            present[place] += value

    def sums(self, now: float) -> list[float]:
        """The sum of each value."""
        self._forget(int(now // self._width))
        return [sum(bucket[place] for _, bucket in self._ring) for place in range(self._values)]

    def _forget(self, number: int) -> None:
        while self._ring and self._ring[0][0] <= number - self._buckets:
            self._ring.popleft()


class SpaceItems:
    """
    :param window: seconds, and the share of all seconds: as of ``ThrashingGuard``
    """

    def __init__(self, rule: Space, now: float, window: float, share: float) -> None:
        self.rule = rule
        self.parts: dict[str, PartItems] = {}
        self.thrashing = ThrashingGuard(window, share, now)
        self.state, self.reason = KEPT, ""
        #: Whether this process contracts and fills it.
        self.owned = False
        #: Why the last victim was not contracted.
        self.refused = ""
        self._hour = RecentCounts(60.0, 60, 2)
        self._lately = RecentCounts(1.0, 10, 2)
        self._expansions = 0
        self._lost = 0.0

    def use_part(self, part: SpacePart) -> PartItems:
        """Create a part, or update its description."""
        items = self.parts.get(part.path)
        if items is None:
            items = self.parts[part.path] = PartItems(part, self.rule.policy)
        items.part = part
        return items

    def use_rule(self, rule: Space) -> None:
        """Apply another rule from now on."""
        self.rule = rule
        for part in self.parts.values():
            part.use_policy(rule.policy)

    def total(self) -> SpaceUsage:
        """The contents of all parts."""
        usages = [part.usage for part in self.parts.values()]
        return SpaceUsage(
            sum(one.expanded_bytes for one in usages),
            sum(one.contracted_bytes for one in usages),
            sum(one.expanded_items for one in usages),
            sum(one.contracted_items for one in usages),
        )

    @property
    def above(self) -> bool:
        """Whether it has more bytes than its target."""
        return sum(part.usage.expanded_bytes for part in self.parts.values()) > self.rule.target_size

    def targets(self) -> Iterator[tuple[PartItems, int]]:
        """The parts that have items, and the expanded bytes that each may have; together they have the target."""
        parts = [part for part in self.parts.values() if len(part)]
        if len(parts) == 1:
            yield parts[0], self.rule.target_size
            return
        usages = [part.usage for part in parts]
        members = [
            Member(usage.expanded_bytes + usage.contracted_bytes, part.part.floor, part.part.weight)
            for part, usage in zip(parts, usages, strict=True)
        ]
        yield from zip(parts, partition(self.rule.target_size, members), strict=True)

    def note_open(self, now: float) -> None:
        """Count a read of an item."""
        self._hour.add(now, 1, 0)

    def note_expansion(self, name: str, seconds: float, now: float) -> None:
        """Count an expansion that a reader waited for."""
        self._hour.add(now, 0, 1)
        self._lately.add(now, 1, seconds)
        self._expansions += 1
        self._lost += seconds
        self.thrashing.expanded(name, seconds, now)

    def status(self, now: float, at: float, owner: str) -> SpaceStatus:
        """The report about the space.

        :param now: seconds of the clock of the counts
        :param at: unix seconds
        """
        total = self.total()
        opens, misses = self._hour.sums(now)
        made, seconds = self._lately.sums(now)
        rule = self.rule
        several = len(self.parts) > 1
        parts = {part.part.path: (target, part.usage.expanded_bytes) for part, target in self.targets()}
        return SpaceStatus(
            rule.path,
            rule.level,
            rule.target_size,
            total.expanded_bytes,
            total.contracted_bytes,
            total.expanded_items,
            total.contracted_items,
            rule.policy,
            rule.min_age,
            rule.verify,
            hits=max(0, int(opens - misses)),
            misses=int(misses),
            expansions=self._expansions,
            seconds_lost=round(self._lost, 3),
            expansions_per_second=made / self._lately.seconds,
            expansion_time=seconds / made if made else 0.0,
            state=self.state,
            reason=self.reason,
            owner=owner,
            said_by=rule.said_by,
            at=at,
            parts=parts if several else {},
        )
