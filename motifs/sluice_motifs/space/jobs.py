"""Running contractions and refills, and items that wait since they could not be contracted."""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sluice_core.errors import SluiceError
from sluice_motifs.api import NotContractible
from sluice_motifs.space.space_index import Place

log = logging.getLogger(__name__)

#: Seconds for which an item is skipped that could not be contracted: to detect that may take a whole expansion.  The
#: time doubles with each further refusal, up to the second figure.
PARKED: Final = 60.0
LONGEST: Final = 3600.0
#: The most items that are skipped at a time.
MOST_PARKED: Final = 100_000
#: Seconds for which a stopping process waits for its jobs; a refill may take as long as its source needs.
LAST_JOBS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Job:
    """
    :param fills: whether the item is expanded; else it is contracted
    :param work: runs the job; returns the outcome
    """

    slot: int
    name: str
    size: int
    place: Place
    fills: bool
    work: Callable[[], str] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """:param outcome: as of ``Contractor.contract``; empty when it failed, with the reason
    :param refused: whether the item must not be contracted; else the reason is temporary, as an unreachable peer
    """

    job: Job
    outcome: str = ""
    reason: str = ""
    refused: bool = False


def perform(job: Job) -> Finished:
    """Run a job in the caller's thread."""
    try:
        return Finished(job, job.work())
    except SluiceError as error:
        return Finished(job, reason=str(error), refused=isinstance(error, NotContractible))
    except Exception:  # the storage may raise any exception, and the job must end
        log.exception("`%s` is not %s", job.name, "filled" if job.fills else "contracted")
        return Finished(job, reason="a fault of ours, see the log")


class Jobs:
    """The running jobs: a bounded number of each kind, so that no contraction waits for a slow source.

    :param contractions: concurrent ones
    :param refills: concurrent ones
    :param run: starts a job
    """

    def __init__(self, contractions: int, refills: int, run: Callable[[Job], None]) -> None:
        self._contractions = contractions
        self._refills = refills
        self._run = run
        self._by_slot: dict[int, Job] = {}

    def __len__(self) -> int:
        return len(self._by_slot)

    def free(self, fills: bool) -> int:
        """The number of jobs of a kind that may still be started."""
        most = self._refills if fills else self._contractions
        return most - sum(one.fills == fills for one in self._by_slot.values())

    def find(self, slot: int) -> Job | None:
        """The job of an item."""
        return self._by_slot.get(slot)

    def of(self, place: Place, fills: bool) -> Iterator[Job]:
        """The jobs of a part that fill, or that contract."""
        return (one for one in self._by_slot.values() if one.place is place and one.fills == fills)

    def begin(self, job: Job) -> None:
        """Start a job."""
        self._by_slot[job.slot] = job
        self._run(job)

    def end(self, job: Job) -> None:
        """Record the result of a job."""
        self._by_slot.pop(job.slot, None)


class JobThreads:
    """Runs each job in a daemon thread.

    :param finished: called with each job, in its thread
    """

    def __init__(self, finished: Callable[[Finished], None]) -> None:
        self._finished = finished
        self._threads: set[threading.Thread] = set()

    def run(self, job: Job) -> None:
        """Start a job."""
        thread = threading.Thread(target=self._perform, args=(job,), name="motif space", daemon=True)
        self._threads.add(thread)
        thread.start()

    def stop(self) -> None:
        """Wait for the running jobs, :data:`LAST_JOBS` at most: a job that is cut off leaves its item contracted."""
        end = time.monotonic() + LAST_JOBS
        for thread in list(self._threads):
            thread.join(max(0.0, end - time.monotonic()))

    def _perform(self, job: Job) -> None:
        self._finished(perform(job))
        self._threads.discard(threading.current_thread())


class Parking:
    """Items that are out of the order of their part for a while."""

    def __init__(self) -> None:
        #: A heap; the second element keeps the order of items that are due together.
        self._waiting: list[tuple[float, int, int, str, Place]] = []
        self._count = 0
        #: The valid entry of the heap, by slot: an item may have been in the order since, and parked again.
        self._counts: dict[int, int] = {}
        #: The number of refusals of an item, by slot.
        self._refusals: dict[int, int] = {}

    def refusals(self, slot: int) -> int:
        """The number of refusals of an item since its last change."""
        return self._refusals.get(slot, 0)

    def put(self, slot: int, name: str, number: int, place: Place, now: float, refused: bool) -> None:
        """Park an item for a while; beyond the limit it is only moved in the order."""
        if len(self._waiting) >= MOST_PARKED or not place.part.park(number):
            place.part.touch(number)
            return
        times = self.refusals(slot)
        if refused:
            self._refusals[slot] = times + 1
        self._count += 1
        self._counts[slot] = self._count
        seconds = min(LONGEST, PARKED * 2 ** min(times, 30)) if refused else PARKED
        heapq.heappush(self._waiting, (now + seconds, self._count, slot, name, place))

    def forget(self, slot: int) -> None:
        """Remove an item that has changed since it was refused."""
        self._refusals.pop(slot, None)

    def due(self, now: float) -> Iterator[tuple[int, str, Place]]:
        """The items that have waited long enough."""
        while self._waiting and self._waiting[0][0] <= now:
            _, count, slot, name, place = heapq.heappop(self._waiting)
            if self._counts.get(slot) == count:
                del self._counts[slot]
                yield slot, name, place
