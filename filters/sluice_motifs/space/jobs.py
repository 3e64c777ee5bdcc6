"""Contractions and refills under way, and items that wait because their bytes had to stay."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import SluiceError
from sluice_motifs.space.space_index import Place

log = logging.getLogger(__name__)

#: Seconds for which an item is left alone whose bytes had to stay, and the most of them.
PARKED: Final = 60.0
MOST_PARKED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Job:
    """
    :param fills: whether bytes are made in advance; else they are given up
    """

    slot: int
    name: str
    size: int
    place: Place
    fills: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """:param outcome: as of ``Contractor.contract``; empty when it failed, with the reason"""

    job: Job
    outcome: str = ""
    reason: str = ""


class Jobs:
    """Runs a bounded number of jobs beside the caller.

    :param finished: told of each, from any thread
    """

    def __init__(self, at_once: int, finished: Callable[[Finished], None]) -> None:
        self._at_once = at_once
        self._finished = finished
        self._pool = ThreadPoolExecutor(at_once, "motif space")
        self._by_slot: dict[int, Job] = {}

    @property
    def free(self) -> int:
        """How many more may be begun."""
        return self._at_once - len(self._by_slot)

    def find(self, slot: int) -> Job | None:
        """The job of an item."""
        return self._by_slot.get(slot)

    def of(self, place: Place, fills: bool) -> Iterator[Job]:
        """Those of a part that fill it, or contract."""
        return (one for one in self._by_slot.values() if one.place is place and one.fills == fills)

    def begin(self, job: Job, work: Callable[[], str]) -> None:
        """Run ``work``, whose answer is the outcome."""
        self._by_slot[job.slot] = job
        self._pool.submit(self._run, job, work)

    def end(self, job: Job) -> None:
        """What came of a job is taken note of."""
        self._by_slot.pop(job.slot, None)

    def stop(self) -> None:
        """Wait for those that are under way."""
        self._pool.shutdown()

    def _run(self, job: Job, work: Callable[[], str]) -> None:
        try:
            self._finished(Finished(job, work()))
        except SluiceError as error:
            self._finished(Finished(job, reason=str(error)))
        except Exception:  # the storage may raise anything, and somebody waits for the end of the job
            log.exception("`%s` is not %s", job.name, "filled" if job.fills else "contracted")
            self._finished(Finished(job, reason="a fault of ours, see the log"))


class Parking:
    """Items that are out of the order of their part for a while."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, int, str, Place]] = deque()

    def put(self, slot: int, name: str, number: int, place: Place, now: float) -> None:
        """Leave an item alone for :data:`PARKED` seconds; when too many are, it is only moved in the order."""
        if len(self._waiting) < MOST_PARKED and place.part.park(number):
            self._waiting.append((now + PARKED, slot, name, place))
        else:
            place.part.touch(number)

    def due(self, now: float) -> Iterator[tuple[int, str, Place]]:
        """Those that have waited long enough."""
        while self._waiting and self._waiting[0][0] <= now:
            _, slot, name, place = self._waiting.popleft()
            yield slot, name, place
