"""Keeps a database within its byte limit: too many bytes are contracted at once, free space is filled.

A thread that stored too many bytes runs the contractions that the keeper of spaces chooses, before it continues;
refills run in the background, one value at a time.  One lock guards the keeper.  It is acquired while the lock of the
item table, or of the store, is held, so neither is acquired while it is held.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Final

from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.items import ItemState
from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Job, perform
from sluice_motifs.space.keeper import SpaceConfig, SpaceKeeper
from sluice_motifs.space.one_space import PATH, OneSpace
from sluice_motifs.space.part_items import SpaceUsage

#: Refused victims after which a thread continues although there are too many bytes.
_MOST_REFUSALS: Final = 16


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """:param limit: bytes; None: no limit
    :param used: bytes of expanded values with motifs
    :param expanded: the number of these values
    :param contracted: the number of contracted values
    :param contracted_bytes: the bytes that these had
    :param hits: reads of values with motifs that had their bytes
    :param expansions: reads whose bytes were made, the first of a value included
    """

    limit: int | None
    used: int
    expanded: int
    contracted: int
    contracted_bytes: int
    hits: int
    expansions: int


class Elasticity:
    """The limit of one database; :meth:`start` and :meth:`stop` it.  Implements ``ItemWatcher``.

    A limit is kept whatever the cost of re-expansions: no share of time bounds them.
    """

    def __init__(self, limit: OneSpace, runtime: Runtime) -> None:
        self._limit = limit
        self._runtime = runtime
        self._begun: list[Job] = []
        config = SpaceConfig(contractions=1, refills=1, share=math.inf)
        self._keeper = SpaceKeeper(runtime, limit, self._begun.append, config)
        self._changed = threading.Condition(threading.RLock())
        self._enforcing = threading.Lock()
        self._exceeded = self._closed = False
        self._hits = self._expansions = 0
        self._thread = threading.Thread(target=self._refill, name="motif precomputation", daemon=True)

    def start(self) -> None:
        """Start to watch values, and to fill free space."""
        self._keeper.update()
        self._runtime.items.watch(self)
        self.enforce()
        self._thread.start()

    def stop(self) -> None:
        """Wait for the running expansion, and start no other."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def set_limit(self, limit: int | None) -> None:
        """
        :raises CallerError: for a negative limit
        """
        self._limit.change(limit, self._limit.policy)
        with self._changed:
            self._keeper.update()
            self._compare_with_limit()
        self.enforce()

    def enforce(self) -> None:
        """Contract values until the limit is kept, or too many victims are refused."""
        if not self._exceeded:
            return
        refusals = 0
        with self._enforcing:
            while refusals < _MOST_REFUSALS and (job := self._next_job(fills=False)) is not None:
                refusals += self._run(job) != CONTRACTED

    def contract(self, name: str, verify: str) -> str:
        """As ``Runtime.contract``; the value is not filled again before it is read."""
        outcome = self._runtime.contract(name, verify)
        slot = self._runtime.items.slot(name)
        if slot is not None:
            with self._changed:
                self._keeper.keep_out(slot)
        return outcome

    def note_read(self, made: bool) -> None:
        """Count a read of a value with motifs; ``made``: it was contracted or stale."""
        with self._changed:
            self._expansions += made
            self._hits += not made

    def statistics(self) -> SpaceStatistics:
        """The present statistics."""
        with self._changed:
            usage = self._usage()
            return SpaceStatistics(
                self._limit.target,
                usage.expanded_bytes,
                usage.expanded_items,
                usage.contracted_items,
                usage.contracted_bytes,
                self._hits,
                self._expansions,
            )

    # ItemWatcher: called in any thread

    def changed(self, slot: int, name: str, before: ItemState | None, after: ItemState | None) -> None:
        with self._changed:
            self._keeper.changed(slot, name, before, after)
            self._compare_with_limit()

    def opened(self, slot: int, name: str) -> None:
        with self._changed:
            self._keeper.opened(slot, name)

    def made(self, slot: int, name: str, seconds: float) -> None:
        with self._changed:
            self._keeper.made(slot, name, seconds)

    def scanned(self) -> None:
        with self._changed:
            self._keeper.scanned()

    def _usage(self) -> SpaceUsage:
        space = self._keeper.spaces.get(PATH)
        return SpaceUsage() if space is None else space.total()

    def _compare_with_limit(self) -> None:
        """Whether there are more bytes than the limit allows, or fewer, which the background fills."""
        target, usage = self._limit.target, self._usage()
        self._exceeded = target is not None and usage.expanded_bytes > target
        if target is not None and not self._exceeded and usage.contracted_items:
            self._changed.notify_all()

    def _next_job(self, fills: bool) -> Job | None:
        """The next job to keep the limit, or to fill free space below it."""
        with self._changed:
            space = self._keeper.spaces.get(PATH)
            if space is not None and self._exceeded != fills:
                self._keeper.update()
                self._keeper.keep(space)
            return self._begun.pop() if self._begun else None

    def _run(self, job: Job) -> str:
        """Run a job; return its outcome."""
        finished = perform(job)
        with self._changed:
            self._keeper.finish(finished)
        return finished.outcome

    def _refill(self) -> None:
        while (job := self._wait_for_job()) is not None:
            self._run(job)
            self.enforce()

    def _wait_for_job(self) -> Job | None:
        """Wait for a job that fills free space; return None after :meth:`stop`."""
        with self._changed:
            while not self._closed:
                job = self._next_job(fills=True)
                if job is not None:
                    return job
                self._changed.wait()
            return None
