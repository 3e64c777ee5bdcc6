"""Decides which revision of a controller runs: the newest that answers, and how it replaces the one before.

A new revision gets a process of its own and must answer once, validly, before the old process is ended.  The old
revision runs meanwhile, and stays if the new one does not answer.  A host that takes over has no old process: it tries
the revisions, newest first, until one answers.  A host never goes back behind a revision that has answered on it.

A revision that failed is tried again, with growing pauses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sluice_actors.controllers.assignment_compiler import Decision
from sluice_actors.controllers.controller_process import (
    ControllerAnswer,
    ControllerCode,
    ControllerEnded,
    ControllerError,
    ControllerProcess,
    start_process,
)
from sluice_actors.controllers.uploads import CodeSource
from sluice_core.control import Observation
from sluice_core.errors import SluiceError
from sluice_core.messages.uploads import Revision, Upload

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Seconds that a controller may take for an answer, or its period if that is longer.
TIME_LIMIT: Final = 10.0
#: The least seconds between two calls of a controller, also the default.
SHORTEST_PERIOD: Final = 1.0


@dataclass(slots=True)
class _Pause:
    until: float
    length: float
    reason: str


class _Tried(NamedTuple):
    """A process that has answered, and the decision in its answer."""

    process: ControllerProcess
    decision: Decision


@dataclass(slots=True)
class Rollout:
    """The processes of one controller.

    :param memory: the limit of each process, in bytes
    :param compiled: compiles an answer; raises ControllerError when the answer is not valid
    """

    upload: Upload
    source: CodeSource
    memory: int
    compiled: Callable[[ControllerAnswer, Revision], Awaitable[Decision]]
    _process: ControllerProcess | None = None
    _running: Revision | None = None
    _proven: int = 0
    _pauses: dict[int, _Pause] = field(default_factory=dict)
    # A newer revision, and the task that checks whether it answers.
    _attempt: tuple[Revision, asyncio.Task[_Tried | None]] | None = None

    @property
    def running(self) -> Revision:
        """The revision that answers, or the newest while none has answered."""
        return self._running or self.upload.current

    @property
    def pid(self) -> int:
        """The id of the controller's process, or 0 without one."""
        return 0 if self._process is None else self._process.pid

    @property
    def rejection(self) -> str:
        """Why the newest revision does not run while another does; empty otherwise."""
        newest = self.upload.revision
        if self._running is None or self._running.number == newest or newest not in self._pauses:
            return ""
        return f"revision {newest} does not run, revision {self._running.number} does: {self._pauses[newest].reason}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the running revision and the newest one read."""
        return tuple(dict.fromkeys((*metrics_of(self.running), *metrics_of(self.upload.current))))

    async def answer(self, observe: Callable[[Revision], Observation]) -> Decision:
        """Return the decision of the newest revision that answers.

        :raises ControllerError: when no revision answers
        """
        await self._adopt_candidate()
        if self._process is not None:
            self._try_candidate(observe)
        else:
            for revision in self._candidates():
                tried = await self._try(revision, observe(revision))
                if tried is not None:
                    await self._switch_to(revision, tried.process)
                    return tried.decision
        process, running = self._process, self._running
        if process is None or running is None:
            raise ControllerError(self._why())
        try:
            return await self.compiled(await process.observe(observe(running), time_limit(running)), running)
        except ControllerEnded as error:
            self._process = None
            self._later(running, str(error))
            await process.close()
            raise

    async def close(self) -> None:
        """End all processes."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt[1].cancel()
            await asyncio.wait((attempt[1],))
            if not attempt[1].cancelled() and attempt[1].exception() is None:
                await self._discard(attempt[1].result())
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    def _try_candidate(self, observe: Callable[[Revision], Observation]) -> None:
        """Try a newer revision while the old one runs, however long that takes."""
        revision = next(self._candidates(), None)
        if revision is not None and self._attempt is None:
            tried = self._try(revision, observe(revision))
            self._attempt = (revision, asyncio.get_running_loop().create_task(tried))

    async def _adopt_candidate(self) -> None:
        """Switch to the revision that was tried meanwhile, if it answered."""
        if self._attempt is None or not self._attempt[1].done():
            return
        (revision, task), self._attempt = self._attempt, None
        tried = task.result()
        if tried is not None and revision.number > self._proven:
            await self._switch_to(revision, tried.process)
        else:
            await self._discard(tried)

    async def _switch_to(self, revision: Revision, process: ControllerProcess) -> None:
        """Replace the running process by ``process``, in which ``revision`` has answered."""
        old, self._process = self._process, process
        self._running, self._proven = revision, revision.number
        self._pauses = {number: pause for number, pause in self._pauses.items() if number > revision.number}
        log.info("controller `%s` runs, revision %d, process %d", self.upload.keyword, revision.number, process.pid)
        if old is not None:
            await old.close()

    @staticmethod
    async def _discard(tried: _Tried | None) -> None:
        if tried is not None:
            await tried.process.close()

    def _candidates(self) -> Iterator[Revision]:
        """Yield the revisions that may replace the running one, newest first, without those that failed lately."""
        now = asyncio.get_running_loop().time()
        for revision in (self.upload.current, *self.upload.revisions):
            if self._process is not None and self._running is not None and revision.number <= self._running.number:
                return
            if revision.number < self._proven:
                return
            pause = self._pauses.get(revision.number)
            if revision.sha256 and (pause is None or pause.until <= now):
                yield revision

    async def _try(self, revision: Revision, observation: Observation) -> _Tried | None:
        """Start a process of ``revision`` and let it answer; return None if it does not."""
        process = None
        try:
            process = await start_process(await self._code(revision))
            answer = await process.observe(observation, time_limit(revision))
            return _Tried(process, await self.compiled(answer, revision))
        except ControllerError as error:
            log.warning("controller `%s`, revision %d: %s", self.upload.keyword, revision.number, error)
            self._later(revision, str(error))
            if process is not None:
                await process.close()
            return None
        except BaseException:
            if process is not None:
                await process.close()
            raise

    async def _code(self, revision: Revision) -> ControllerCode:
        try:
            code = await self.source.get(revision.sha256)
        except SluiceError as error:
            raise ControllerError(f"its code cannot be read: {error}") from error
        main = revision.main or self.upload.main
        return ControllerCode(self.upload.keyword, revision.number, main, revision.sha256, code, self.memory)

    def _later(self, revision: Revision, reason: str) -> None:
        before = self._pauses.get(revision.number)
        length = FIRST_PAUSE if before is None else min(before.length * 2, _LONGEST_PAUSE)
        self._pauses[revision.number] = _Pause(asyncio.get_running_loop().time() + length, length, reason)

    def _why(self) -> str:
        pause = self._pauses.get(max(self.upload.revision, self._proven)) or self._pauses.get(self._proven)
        return "it has no code" if pause is None else pause.reason


def metrics_of(revision: Revision) -> tuple[str, ...]:
    """The metrics that a revision has declared to read."""
    found = revision.info.get("metrics", ())
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def allocates_of(revision: Revision) -> tuple[str, ...]:
    """The methods whose rates a revision has declared to compute."""
    found = revision.info.get("allocates", ())
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def sees_bandwidth(revision: Revision) -> bool:
    """True when a revision has declared that it reads bandwidth, or allocates it."""
    return bool(revision.info.get("bandwidth")) or bool(allocates_of(revision))


def period_of(revision: Revision) -> float:
    """Seconds between two calls, as the revision has declared."""
    found = revision.info.get("period", SHORTEST_PERIOD)
    return max(SHORTEST_PERIOD, float(found)) if isinstance(found, int | float) else SHORTEST_PERIOD


def time_limit(revision: Revision) -> float:
    """Seconds that an answer may take."""
    return max(TIME_LIMIT, period_of(revision))
