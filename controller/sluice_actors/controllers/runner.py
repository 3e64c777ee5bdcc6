"""Runs one global controller on its host: observe, ask its process, write the difference.

The controller's assignments stay in force through every failure: a process that ends, an exception, an invalid answer,
metrics that do not arrive.  They are taken back by an answer without them, and by a stop of the controller.

A write expects the version of the upload that produced the answer and carries the ownership of ``controller/<name>``.
So a controller that was stopped, or that another host runs, never writes again, even if this host does not know yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from sluice_actors.controllers.assignment_compiler import (
    AssignmentCompiler,
    Assignments,
    Decision,
    check_rates,
    policy_id,
)
from sluice_actors.controllers.controller_process import ControllerAnswer, ControllerError
from sluice_actors.controllers.observation import BandwidthView, MetricObserver, NodeStatus, read_bandwidth
from sluice_actors.controllers.rollout import Rollout, allocates_of, metrics_of, period_of, sees_bandwidth
from sluice_actors.controllers.uploads import CodeSource, UploadIndex
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.decision_writer import DecisionWriter
from sluice_actors.runtime.services import owned_term, wait_at_most
from sluice_core.control import Observation
from sluice_core.errors import Conflict, Fenced, PeerError
from sluice_core.messages.bandwidth import ControllerRates, Rate
from sluice_core.messages.events import CONTROLLER_FAILED
from sluice_core.messages.uploads import Revision, Upload
from sluice_core.store import fencing
from sluice_core.store.records import Draft

log = logging.getLogger(__name__)

STARTING: Final = "starting"
WAITING: Final = "waiting"
RUNNING: Final = "running"
FAILED: Final = "failed"
#: Rates hold for this many periods of their controller.
_VALID_PERIODS: Final = 3


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """State and callbacks that all controllers of a host share.

    ``writer`` has the store, the writer's name and the history of all writes, and the callback for committed
    assignments.  ``publish_rates`` sends rates to the host that allocates bandwidth.  ``memory`` is the limit of each
    process in bytes.  ``on_change`` is called when a state has changed, ``on_conflict`` when the version of an upload
    differs from the known one.
    """

    writer: DecisionWriter
    router: MetricRouter
    publish_rates: Callable[[ControllerRates], None]
    source: CodeSource
    uploads: UploadIndex
    memory: int
    clock: Callable[[], float]
    on_change: Callable[[], None]
    on_conflict: Callable[[str], None]


@dataclass(slots=True)
class ControllerState:
    """The reported state of a controller: ``since`` when it is in this state; ``seconds`` its last answer took."""

    state: str = STARTING
    reason: str = ""
    since: float = 0.0
    last_run: float = 0.0
    seconds: float = 0.0
    assignments: int = 0


class ControllerRunner:
    """Runs one controller; :meth:`run` is a task of its own."""

    def __init__(self, context: ControllerContext, upload: Upload, version: int) -> None:
        self.name = upload.keyword
        self._state = ControllerState(since=context.clock())
        self._context = context
        self._version = version
        self._rollout = Rollout(upload, context.source, context.memory, self._compiled)
        self._observer = MetricObserver(self.name, context.router, context.uploads.period, context.clock)
        self._compiler = AssignmentCompiler(self.name, upload.created)
        # The controller's assignments in the store; None if they were not read, or may have changed.
        self._stored: Assignments | None = None

    def update(self, upload: Upload, version: int) -> None:
        """Use this version of the upload."""
        self._version = version
        self._stored = None  # the change of the upload may have changed the assignments too
        self._rollout.upload = upload
        self._observer.new_window.set()

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                await self._run_once()
                await asyncio.sleep(began + period_of(self._rollout.running) - loop.time())
                if self._rollout.metrics:
                    await wait_at_most(self._observer.new_window, period_of(self._rollout.running))
        finally:
            self._observer.close()
            await self._rollout.close()

    def report(self) -> dict[str, Any]:
        """The controller's part of the host's report."""
        return {**asdict(self._state), "revision": self._rollout.running.number, "pid": self._rollout.pid}

    async def _run_once(self) -> None:
        self._observer.new_window.clear()
        self._observer.watch(self._rollout.metrics)
        awaited_metrics = self._observer.awaited_metrics
        if awaited_metrics:
            self._set_state(self._state.state, f"waiting for {', '.join(awaited_metrics)}")
            return
        began = asyncio.get_running_loop().time()
        try:
            nodes = await self._nodes()
            bandwidth = await self._bandwidth()
            if self._observer.observation(self._rollout.metrics, nodes) is None:
                self._set_state(WAITING, f"no window of {', '.join(self._rollout.metrics)} arrives")
                return
            self._state.last_run = self._context.clock()
            decision = await self._rollout.answer(lambda revision: self._observe(revision, nodes, bandwidth))
            self._state.seconds = round(asyncio.get_running_loop().time() - began, 4)
            self._publish(decision.rates)
            await self._write(decision.assignments)
        except ControllerError as error:
            self._set_state(FAILED, str(error))
        except PeerError as error:
            self._stored = None  # the write may have succeeded although its answer was lost
            self._set_state(WAITING, str(error))
        else:
            self._set_state(RUNNING, self._rollout.rejection)

    async def _nodes(self) -> NodeStatus:
        found = await self._context.writer.store.nodes()
        return {one.node: {"state": one.state, "epoch": one.epoch, "workers": one.workers} for one in found}

    async def _bandwidth(self) -> BandwidthView:
        if not any(map(sees_bandwidth, (self._rollout.running, self._rollout.upload.current))):
            return BandwidthView()
        view = await read_bandwidth(self._context.writer.store)
        if view is None:
            raise PeerError("no report of bandwidth arrives")
        return view

    def _observe(self, revision: Revision, nodes: NodeStatus, bandwidth: BandwidthView) -> Observation:
        seen = self._observer.observation(metrics_of(revision), nodes)
        if seen is None:
            seen = Observation(float(int(self._context.clock())), {}, nodes)
        return bandwidth.add_to(seen) if sees_bandwidth(revision) else seen

    async def _compiled(self, answer: ControllerAnswer, revision: Revision) -> Decision:
        check_rates(answer.rates, allocates_of(revision))
        return Decision(await self._compiler.compile(answer.assigns, self._context.uploads.catalogue), answer.rates)

    def _publish(self, rates: tuple[Rate, ...]) -> None:
        """Send the rates of the methods that it allocates, also an empty list: that holds nothing back."""
        revision, ownership = self._rollout.running, self._context.writer.ownership
        methods = allocates_of(revision)
        if not methods or not ownership.acting:
            return
        term = owned_term(ownership, f"controller/{self.name}")
        valid = _VALID_PERIODS * period_of(revision)
        self._context.publish_rates(ControllerRates(self.name, term, self._context.clock(), valid, methods, rates))

    async def _write(self, wanted: Assignments) -> None:
        """Write the assignments so that exactly ``wanted`` are in force.

        :raises PeerError: when the store is unreachable, or this host is cut off from the team
        """
        writer, version = self._context.writer, self._version
        stored = await self._read() if self._stored is None else self._stored
        puts = tuple(one for name, one in wanted.items() if stored.get(name) != one)
        drops = tuple(name for name in stored if name not in wanted)
        if not puts and not drops:
            return
        if not writer.ownership.acting:
            raise PeerError("cut off from the team of actor hosts")
        key = self._rollout.upload.key
        draft = Draft(
            writer.by, puts, drops, expect={f"upload/{key}": version},
            history=writer.history, fence=writer.ownership.fence((f"controller/{self.name}",)),
        )  # fmt: skip
        try:
            await writer.store.commit(draft)
        except Fenced as fenced:
            self._stored = None
            writer.ownership.refused(fenced.slot)
            raise PeerError(f"another host owns it: {fenced}") from fenced
        except Conflict as conflict:
            self._stored = None
            self._context.on_conflict(self.name)
            raise PeerError(f"it was changed meanwhile: {conflict}") from conflict
        if self._version == version:  # otherwise the assignments may have been taken back already
            self._stored = wanted
            self._state.assignments = len(wanted)
        writer.committed(puts, [stored[name] for name in drops])

    async def _read(self) -> Assignments:
        """Read the assignments in force that this controller has set."""
        store, version = self._context.writer.store, self._version
        names = await store.run(fencing.hash_fields(store.keys.assignments))
        mine = fencing.assignments_of_policies(names, {policy_id(self.name)})
        in_force: Assignments = {}
        for part in fencing.chunks(mine):
            in_force.update({one.id: one for one in await store.run(fencing.assignments(store.keys, part))})
        if self._version == version:
            self._stored = in_force
        self._state.assignments = len(in_force)
        return in_force

    def _set_state(self, name: str, reason: str) -> None:
        state = self._state
        if (state.state, state.reason) == (name, reason):
            return
        if name == FAILED:
            log.warning("controller `%s` failed: %s", self.name, reason)
            if state.state != FAILED:
                text = f"controller `{self.name}` failed: {reason}"
                self._context.writer.log_event(CONTROLLER_FAILED, text, subject=self.name)
        if state.state != name:
            state.since = self._context.clock()
        state.state, state.reason = name, reason
        self._context.on_change()
