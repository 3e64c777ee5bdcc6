"""The global controllers of an actor host: those that are uploaded, started by the API, and owned by this host.

Each controller belongs to one host of the team, as each policy does (``Ownership.owns("controller/<name>")``).
The change stream brings stops, new revisions and removals.  One task decides which controllers run; each controller is
a task of its own (``sluice_actors.controllers.runner``) with a process of its own
(``sluice_actors.controllers.controller_process``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sluice_actors.controllers.runner import ControllerContext, ControllerRunner
from sluice_actors.controllers.uploads import CodeSource, UploadIndex
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.runtime.services import Service, Spawn, repeat_forever
from sluice_code.code_store import CodeStore
from sluice_code.swift_code_store import SwiftCodeStore, SwiftCodeStoreSettings
from sluice_core.messages.bandwidth import ControllerRates
from sluice_core.messages.policies import Change
from sluice_core.messages.uploads import CONTROLLER_CODE, Upload, upload_key
from sluice_core.store.operation import Operation, decoded

log = logging.getLogger(__name__)

_PREFIX: Final = upload_key(CONTROLLER_CODE, "")
_CANCEL_AGAIN: Final = 2.0
_BUG_PAUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Running:
    runner: ControllerRunner
    task: asyncio.Task[None]


class ControllerManager(Service):
    """``settings`` are those of the host.

    :param writer: the store, the writer's name and history of all writes, and the callback for committed assignments
    :param on_change: called when the report has changed
    :param publish_rates: sends rates to the host that allocates bandwidth
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        writer: DecisionWriter,
        router: MetricRouter,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        publish_rates: Callable[[ControllerRates], None],
    ) -> None:
        place = SwiftCodeStoreSettings.from_options(settings)
        self._uploads = UploadIndex()
        self._context = ControllerContext(
            writer=writer,
            router=router,
            publish_rates=publish_rates,
            source=CodeSource(None if place is None else SwiftCodeStore(place), CodeStore(settings["code_dir"])),
            uploads=self._uploads,
            memory=settings["controller_memory_mb"] << 20,
            clock=clock,
            on_change=on_change,
            on_conflict=self.review,
        )
        self._running: dict[str, _Running] = {}
        self._dirty: set[str] = set()
        self._work = asyncio.Event()

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("controllers", self._step))

    async def close(self) -> None:
        """End all processes; their assignments stay."""
        for name in list(self._running):
            await self._end(name)

    # -- called by the host

    def replace(self, uploads: Iterable[Upload]) -> None:
        """Replaces all uploads by ``uploads``, and reviews all controllers."""
        self._uploads.replace(uploads)
        self.review_all()

    def apply(self, change: Change) -> None:
        """Applies the changes of uploads in ``change``, and reviews their controllers."""
        self._uploads.apply(change)
        named = [one.keyword for one in change.uploads if one.kind == CONTROLLER_CODE]
        gone = [key.removeprefix(_PREFIX) for key in change.upload_drops if key.startswith(_PREFIX)]
        for name in (*named, *gone):
            self.review(name)

    def review_all(self) -> None:
        """Review all controllers, since this host may own others now."""
        for name in (*self._uploads.controllers, *self._running):
            self.review(name)

    def review(self, name: str) -> None:
        """Check soon whether this controller is to run here, and which revision."""
        self._dirty.add(name)
        self._work.set()

    async def _step(self) -> None:
        await self._work.wait()
        self._work.clear()
        while self._dirty:
            name = self._dirty.pop()
            try:
                await self._reconcile(name)
            except BaseException:
                self.review(name)
                raise

    def report(self) -> dict[str, dict[str, Any]]:
        """Name → state of the controller, for the host's report."""
        return {name: one.runner.report() for name, one in sorted(self._running.items())}

    async def _reconcile(self, name: str) -> None:
        context = self._context
        key = upload_key(CONTROLLER_CODE, name)
        running = self._running.get(name)
        found = await _read(context, key) if context.writer.ownership.owns(key) else None
        if found is None or not found[0].running or not found[0].sha256:
            if running is not None:
                await self._end(name)
                context.on_change()
        elif running is not None and not running.task.done():
            running.runner.update(*found)
        else:
            runner = ControllerRunner(context, *found)
            task = asyncio.get_running_loop().create_task(runner.run())
            task.add_done_callback(partial(self._ended, name))
            self._running[name] = _Running(runner, task)
            context.on_change()

    async def _end(self, name: str) -> None:
        task = self._running[name].task
        while not task.done():
            task.cancel()  # repeated in case the cancellation is lost, but not while a process is being ended
            await asyncio.wait((task,), timeout=_CANCEL_AGAIN)
        del self._running[name]

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Restart the controller after a bug of Sluice: it must stop one controller, not the whole host."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("controller `%s` restarts in %g s", name, _BUG_PAUSE, exc_info=error)
            asyncio.get_running_loop().call_later(_BUG_PAUSE, self.review, name)


async def _read(context: ControllerContext, key: str) -> tuple[Upload, int] | None:
    """Read an upload and its version, atomically; None without any."""
    store = context.writer.store
    keys = store.keys

    def parse(replies: list[Any]) -> tuple[Upload, int] | None:
        upload = decoded(Upload, key, replies[0])
        return None if upload is None else (upload, int(replies[1] or 0))

    commands = (("HGET", keys.uploads, key), ("HGET", keys.versions, f"upload/{key}"))
    return await store.run(Operation(commands, parse, atomic=True))
