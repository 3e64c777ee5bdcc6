"""Decides which items spaces contract and fill, and starts the jobs: for daemons, mounts and databases.

Theory of operation

* The runtime's item table reports each change and open; the keeper's host passes that on in its order, and calls
  all methods one after the other: in a thread of their own (``controller``), or under a lock.
* Running ``Jobs`` count as done, so that a check never starts too many.
* An item that cannot be contracted leaves the order for a while, and longer each time, so that it is not checked each
  second, nor verified each minute.
* No item is filled before a scan (``Runtime.restart``) has found all items: a space that seems empty would be filled
  beyond its target.
* An item that a client or the API contracts is not filled again before it is read.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sluice_core.describe import Scalar
from sluice_core.messages.events import MOTIF_CONTRACTED, MOTIF_THRASHING
from sluice_motif_control.messages import SpaceStatus
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.expansion.opening import ReportEvent
from sluice_motifs.items import ItemState
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Finished, Job, Jobs, Parking
from sluice_motifs.space.one_space import UNLIMITED
from sluice_motifs.space.planner import Candidate, ContractionPlan, plan_refill
from sluice_motifs.space.space_index import Place, SpaceIndex, SpaceRules
from sluice_motifs.space.space_items import ABOVE, CONTRACTING, FILLING, KEPT, SUSPENDED, THRASHING, SpaceItems

log = logging.getLogger(__name__)

#: Free space is filled up to this part of the target, so that the expanded items are not contracted for the next new
#: one.
FILLED: Final = 0.9
#: Seconds within which a read shows that an item was contracted too early, and the share of all seconds that such
#: reads may take.
WINDOW: Final = 300.0
SHARE: Final = 0.01
_EXPANDED: Final = "expanded"


def _ignore(*args: object) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class SpaceConfig:
    """The collaborators and limits of a keeper of spaces.

    :param guard: returns why no item may be contracted now; empty when items may
    :param in_use: whether an item is open, and must keep its bytes for that time
    :param report: writes the status of the spaces that are owned here; raises PeerError
    :param clock: monotonic seconds
    :param now: unix seconds
    :param contractions: concurrent ones
    :param refills: concurrent ones
    :param window: seconds, and share of all seconds, that re-expansions may take: as of ``ThrashingGuard``
    """

    guard: Callable[[], str] = str
    in_use: Callable[[str], bool] = lambda name: False
    report: Callable[[Sequence[SpaceStatus]], object] = _ignore
    report_event: ReportEvent = _ignore
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    contractions: int = 8
    refills: int = 8
    window: float = WINDOW
    share: float = SHARE


@dataclass(slots=True)
class _SpaceCheck:
    """The result of one check of a space."""

    suspended: str = ""
    allowed: int | None = None
    above: bool = False
    held: bool = False
    contracting: int = 0
    filling: int = 0
    skipped: Counter[Scalar] = field(default_factory=Counter)


class SpaceKeeper:
    """Implements ``ItemWatcher``.

    :param run: starts a job; :meth:`finish` is to be called at its end
    """

    def __init__(self, runtime: Runtime, rules: SpaceRules, run: Callable[[Job], None], config: SpaceConfig):
        self.jobs = Jobs(config.contractions, config.refills, run)
        self._index = SpaceIndex(rules, runtime.items.name, config.window, config.share)
        self.spaces = self._index.spaces
        self._runtime = runtime
        self._config = config
        self._parking = Parking()
        self._contracted: set[str] = set()
        #: Whether all items are known, so that the free space is known, too.
        self._may_fill = False

    # ItemWatcher

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        now = self._config.clock()
        job, before = self.jobs.find(slot), self._index.state(slot)
        as_victim = job is not None and not job.fills
        self._parking.forget(slot)
        self._index.change(slot, name, after, now, as_victim)
        self.unpark(slot)
        place = self._index.place(slot)
        if place is None or before is None or after is None or not before.expanded or after.expanded:
            return
            # the owner did not choose it: a caller contracted it, or it is stale; the target does not need it again
        if as_victim or not place.space.owned:
            place.space.thrashing.contracted(name, before.size, now)

    def opened(self, slot: int, name: str) -> None:
        place = self._index.place(slot)
        if place is not None:
            place.space.note_open(self._config.clock())
            place.part.open(self._index.number(slot))

    def made(self, slot: int, name: str, seconds: float) -> None:
        job, place = self.jobs.find(slot), self._index.place(slot)
        if place is not None and (job is None or not job.fills):
            place.space.note_expansion(name, seconds, self._config.clock())

    def scanned(self) -> None:
        self._may_fill = True

    # Decisions

    def update(self) -> None:
        """Read the policies again, and put items that were parked for long enough back into the order."""
        self._index.update(self._config.clock())
        for slot, name, place in self._parking.due(self._config.clock()):
            if self._is_same(slot, name, place):
                place.part.unpark(self._index.number(slot))

    def space_of(self, slot: int) -> SpaceItems | None:
        """The space of an item."""
        place = self._index.place(slot)
        return None if place is None else place.space

    def keep_out(self, slot: int) -> None:
        """Do not fill an item again before it is read."""
        place = self._index.place(slot)
        if place is not None:
            place.part.keep_out(self._index.number(slot))

    def unpark(self, slot: int) -> None:
        """Reconsider a parked item: it may have been in use when it was refused."""
        place = self._index.place(slot)
        if place is not None and self._parking.refusals(slot) < 2:
            place.part.unpark(self._index.number(slot))

    def keep(self, space: SpaceItems) -> None:
        """Start the jobs that bring a space to its target, as far as turns are free; return its state."""
        limit = space.thrashing.limit(self._config.clock())
        check = _SpaceCheck(self._config.guard(), limit.allowed)
        for part, target in space.targets():
            place = self._index.place_of(space, part)
            if place is not None:
                self._check_part(place, target, check)
        self._conclude(space, check, str(limit))

    def finish(self, finished: Finished) -> SpaceItems | None:
        """Record the result of a job; return the space to check again at once, if any."""
        job = finished.job
        self.jobs.end(job)
        if not self._is_same(job.slot, job.name, job.place):
            return job.place.space
        space, number = job.place.space, self._index.number(job.slot)
        if job.fills:
            if finished.reason:
                log.info("`%s` is not made in advance: %s", job.name, finished.reason)
            job.place.part.keep_out(number)  # an item that cannot be stored is not made again
        elif finished.reason:
            space.refused = finished.reason
            self._parking.put(job.slot, job.name, number, job.place, self._config.clock(), finished.refused)
        elif finished.outcome == CONTRACTED and space.rule.path not in self._contracted:
            self._contracted.add(space.rule.path)
            text = f"`{job.name}` is the first to give up its bytes, {job.size} of them"
            self._config.report_event(MOTIF_CONTRACTED, space.rule.path, text)
        elif finished.outcome != CONTRACTED:  # another process has its lease, and may for a while
            job.place.part.touch(number)
            return None
        return space

    def _check_part(self, place: Place, target: int, check: _SpaceCheck) -> None:
        space, part = place.space, place.part
        going, coming = self._under_way(place, fills=False), self._under_way(place, fills=True)
        used = max(0, part.usage.expanded_bytes - going)
        check.contracting += going > 0
        check.filling += coming > 0
        if used > target:
            check.above = True
            if not check.suspended:
                allowed = None if check.allowed is None else max(0, check.allowed - going)
                plan = ContractionPlan(used, target, part, self._view(place), space.rule.min_age, allowed)
                chosen = list(islice(plan, self.jobs.free(fills=False)))
                freed = sum(self._contract(place, number) for number in chosen)
                check.contracting += bool(chosen)
                check.held = check.held or plan.held_up
                check.skipped.update({str(reason): count for reason, count in plan.skipped.items()})
                check.allowed = None if check.allowed is None else max(0, check.allowed - freed)
        elif self._may_fill and space.rule.target_size < UNLIMITED:
            refills = plan_refill(used + coming, int(target * FILLED), part.recent(), self._view(place))
            chosen = list(islice(refills, self.jobs.free(fills=True)))
            check.filling += bool(chosen)
            for number in chosen:
                self._fill(place, number)

    def _under_way(self, place: Place, fills: bool) -> int:
        """Bytes of jobs whose items are unchanged; the other results were reported and are counted."""
        jobs = ((job, self._index.state(job.slot)) for job in self.jobs.of(place, fills))
        return sum(job.size for job, state in jobs if state is not None and state.expanded != fills)

    def _conclude(self, space: SpaceItems, check: _SpaceCheck, limit: str) -> None:
        before = space.state
        space.state, space.reason = KEPT, ""
        if check.above and check.suspended:
            space.state, space.reason = SUSPENDED, check.suspended
        elif check.held:
            space.state, space.reason = THRASHING, limit
        elif check.contracting:
            space.state = CONTRACTING
        elif check.above:
            skipped = ", ".join(f"{count} are {reason}" for reason, count in check.skipped.items())
            space.state, space.reason = ABOVE, "; ".join(filter(None, (skipped, space.refused))) or "nothing can go"
        elif check.filling:
            space.state = FILLING
        if space.state == THRASHING and before != THRASHING:
            self._config.report_event(MOTIF_THRASHING, space.rule.path, space.reason)

    def _contract(self, place: Place, number: int) -> int:
        """Start a contraction; return its bytes."""
        verify = place.space.rule.verify
        return self._begin(place, number, False, lambda name: self._runtime.contract(name, verify))

    def _fill(self, place: Place, number: int) -> None:
        def expand(name: str) -> str:
            self._runtime.expand(name)
            return _EXPANDED

        self._begin(place, number, True, expand)

    def _begin(self, place: Place, number: int, fills: bool, work: Callable[[str], str]) -> int:
        slot = place.part.slot(number)
        name, state = self._runtime.items.name(slot), self._index.state(slot)
        if name is None or state is None:
            return 0  # the item was removed, which the table will report
        self.jobs.begin(Job(slot, name, state.size, place, fills, lambda: work(name)))
        return state.size

    def _view(self, place: Place) -> Callable[[int], Candidate]:
        now = self._config.clock()

        def view(number: int) -> Candidate:
            slot = place.part.slot(number)
            state, name = self._index.state(slot), self._runtime.items.name(slot)
            in_use = name is not None and self._config.in_use(name)
            under_way = state is None or self.jobs.find(slot) is not None
            return Candidate(state.size if state else 0, self._index.age(slot, now), in_use, under_way=under_way)

        return view

    def _is_same(self, slot: int, name: str, place: Place) -> bool:
        return self._runtime.items.name(slot) == name and self._index.place(slot) is place
