"""Decides what the spaces that are owned here contract and fill, and begins it.  One thread uses it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sluice_core.describe import Scalar
from sluice_core.messages.events import MOTIF_CONTRACTED, MOTIF_THRASHING
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.expansion.observers import Tell
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Finished, Job, Jobs, Parking
from sluice_motifs.space.planner import Candidate, ContractionPlan, plan_refill
from sluice_motifs.space.space_index import Place, SpaceIndex
from sluice_motifs.space.space_items import ABOVE, CONTRACTING, FILLING, KEPT, SUSPENDED, THRASHING, SpaceItems

log = logging.getLogger(__name__)

#: Spare space is filled up to this part of the target, so that what is made is not given up for the next new item.
FILLED: Final = 0.9
_EXPANDED: Final = "expanded"


@dataclass(slots=True)
class _Look:
    """What one look at a space found."""

    suspended: str = ""
    allowed: int | None = None
    above: bool = False
    held: bool = False
    contracting: int = 0
    filling: int = 0
    skipped: Counter[Scalar] = field(default_factory=Counter)


class SpaceKeeper:
    """
    :param guard: why nothing may be contracted now; empty when it may
    :param clock: seconds; never goes back
    """

    def __init__(
        self,
        runtime: Runtime,
        index: SpaceIndex,
        jobs: Jobs,
        guard: Callable[[], str],
        tell: Tell,
        clock: Callable[[], float],
    ) -> None:
        self._runtime = runtime
        self._index = index
        self._jobs = jobs
        self._guard = guard
        self._tell = tell
        self._clock = clock
        self._parking = Parking()
        self._contracted: set[str] = set()
        #: Whether all items are known, so that what seems spare is.
        self.may_fill = False

    def unpark(self) -> None:
        """Let items that were left alone for long enough have their turn again."""
        for slot, name, place in self._parking.due(self._clock()):
            if self._is_same(slot, name, place):
                place.part.unpark(self._index.number(slot))

    def keep(self, space: SpaceItems) -> None:
        """Begin what brings a space to its target, as far as there are free turns; say how it stands."""
        limit = space.thrashing.limit(self._clock())
        look = _Look(self._guard(), limit.allowed)
        for part, target in space.targets():
            place = self._index.place_of(space, part)
            if place is not None:
                self._look_at(place, target, look)
        self._conclude(space, look, str(limit))

    def finish(self, finished: Finished) -> SpaceItems | None:
        """Take note of what came of a job; the space that is to be looked at again."""
        job = finished.job
        self._jobs.end(job)
        if not self._is_same(job.slot, job.name, job.place):
            return job.place.space
        space, number = job.place.space, self._index.number(job.slot)
        if finished.reason and job.fills:
            log.info("`%s` is not made in advance: %s", job.name, finished.reason)
            job.place.part.keep_out(number)
        elif finished.reason:
            space.refused = finished.reason
            self._parking.put(job.slot, job.name, number, job.place, self._clock())
        elif finished.outcome == CONTRACTED and space.rule.path not in self._contracted:
            self._contracted.add(space.rule.path)
            text = f"`{job.name}` is the first to give up its bytes, {job.size} of them"
            self._tell(MOTIF_CONTRACTED, space.rule.path, text)
        elif finished.outcome not in (CONTRACTED, _EXPANDED):  # somebody works at it
            job.place.part.touch(number)
        return space

    def _look_at(self, place: Place, target: int, look: _Look) -> None:
        space, part = place.space, place.part
        going = sum(job.size for job in self._jobs.of(place, fills=False))
        coming = sum(job.size for job in self._jobs.of(place, fills=True))
        used = max(0, space.usage(part).expanded_bytes - going)
        look.contracting += going > 0
        look.filling += coming > 0
        if used > target:
            look.above = True
            if not look.suspended:
                allowed = None if look.allowed is None else max(0, look.allowed - going)
                plan = ContractionPlan(used, target, part, self._view(place), space.rule.min_age, allowed)
                chosen = list(islice(plan, self._jobs.free))
                freed = sum(self._contract(place, number) for number in chosen)
                look.contracting += bool(chosen)
                look.held = look.held or plan.held_up
                look.skipped.update({str(reason): count for reason, count in plan.skipped.items()})
                look.allowed = None if look.allowed is None else max(0, look.allowed - freed)
        elif self.may_fill and self._jobs.free > 0:
            refills = plan_refill(used + coming, int(target * FILLED), part.recent(), self._view(place))
            chosen = list(islice(refills, self._jobs.free))
            look.filling += bool(chosen)
            for number in chosen:
                self._fill(place, number)

    def _conclude(self, space: SpaceItems, look: _Look, limit: str) -> None:
        before = space.state
        space.state, space.reason = KEPT, ""
        if look.above and look.suspended:
            space.state, space.reason = SUSPENDED, look.suspended
        elif look.held:
            space.state, space.reason = THRASHING, limit
        elif look.contracting:
            space.state = CONTRACTING
        elif look.above:
            skipped = ", ".join(f"{count} are {reason}" for reason, count in look.skipped.items())
            space.state, space.reason = ABOVE, "; ".join(filter(None, (skipped, space.refused))) or "nothing can go"
        elif look.filling:
            space.state = FILLING
        if space.state == THRASHING and before != THRASHING:
            self._tell(MOTIF_THRASHING, space.rule.path, space.reason)

    def _contract(self, place: Place, number: int) -> int:
        """Begin a contraction; its bytes."""
        job = self._job(place, number, fills=False)
        if job is None:
            return 0
        self._jobs.begin(job, lambda: self._runtime.contract(job.name, place.space.rule.verify))
        return job.size

    def _fill(self, place: Place, number: int) -> None:
        job = self._job(place, number, fills=True)
        if job is not None:

            def work() -> str:
                self._runtime.expand(job.name)
                return _EXPANDED

            self._jobs.begin(job, work)

    def _job(self, place: Place, number: int, fills: bool) -> Job | None:
        slot = place.part.slot(number)
        name, state = self._runtime.items.name(slot), self._index.state(slot)
        if name is None or state is None:
            return None  # it is gone, which will be told
        return Job(slot, name, state.size, place, fills)

    def _view(self, place: Place) -> Callable[[int], Candidate]:
        now = self._clock()

        def view(number: int) -> Candidate:
            slot = place.part.slot(number)
            state = self._index.state(slot)
            under_way = state is None or self._jobs.find(slot) is not None
            return Candidate(state.size if state else 0, self._index.age(slot, now), under_way=under_way)

        return view

    def _is_same(self, slot: int, name: str, place: Place) -> bool:
        return self._runtime.items.name(slot) == name and self._index.place(slot) is place
