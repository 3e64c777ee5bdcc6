"""For tests of the host that divides bandwidth: a host on a bus without a broker, and a node that reports its load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from tests.support.actors.bandwidth import MB, flow_row, node_load
from tests.support.actors.host import HostScenario, run_scenario, settings, wait_until
from tests.support.actors.ownership import SingleHost

from sluice_actors.bandwidth.service import NAME, AllocationService
from sluice_actors.policies.group_index import GroupIndex
from sluice_core.connections.exchanges import load_routing_key, shares_routing_key
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, NodeLoad, Shares
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.store.fencing import slot_of
from sluice_core.store.records import Draft
from sluice_core.store.store import cancel_tasks
from sluice_core.testing import FakeBus, fits

#: How many seconds of the host pass in a real one.
PACE = 5.0


class Wire(FakeBus):
    """Publisher and consumer of one host at once."""

    def __init__(self) -> None:
        super().__init__()
        self.connected = asyncio.Event()
        self.connected.set()
        self.patterns: set[str] = set()
        self.host: AllocationService | None = None

    def start(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def bind(self, pattern: str) -> None:
        """Deliver messages of ``pattern`` from now on."""
        self.patterns.add(pattern)

    def unbind(self, pattern: str) -> None:
        """Deliver them no more."""
        self.patterns.discard(pattern)

    def tell(self, told: NodeLoad, body: bytes | None = None) -> None:
        """A node publishes a message."""
        key = load_routing_key(told.node)
        if self.host and any(fits(pattern.split("."), key.split(".")) for pattern in self.patterns):
            self.host.receive(key, told.encode() if body is None else body)

    def heard(self, node: str) -> list[Shares]:
        """The messages for ``node``."""
        return [Shares.decode(body) for key, body in self.sent if key == shares_routing_key(node)]


class Owner(SingleHost):
    """Owns what a test sets, under a term that grows."""

    def __init__(self, owns: bool = True) -> None:
        self.owning = owns
        self.term = 7

    def owns(self, name: str) -> bool:
        """Whether it owns the allocation; other names have no owner."""
        return self.owning and name == NAME

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """As a team does."""
        return {slot_of(name): f"{self.term} h1" for name in names}

    def now(self, owning: bool, host: AllocationService) -> None:
        """Gain or lose the ownership."""
        self.owning = owning
        self.term += owning
        host.check_ownership()


class Scene:
    """One allocating host, and a node that reports its load; their time runs :data:`PACE` times as fast."""

    def __init__(self, redis_url: str, owner: Owner | None = None) -> None:
        self.story = HostScenario(redis_url)
        self.owner = owner or Owner()
        self.wire = Wire()
        self.groups = GroupIndex()
        given = settings(redis_url, self.story.prefix)
        self.host = AllocationService(
            given, self.story.store, self.owner, self.groups,
            lambda: time.time() * PACE, lambda: time.monotonic() * PACE,
        )  # fmt: skip
        self.host._publisher = self.host._consumer = self.wire  # type: ignore[assignment]
        wait = self.host._wait
        self.host._wait = lambda event, seconds: wait(event, seconds / PACE)  # type: ignore[method-assign]
        self.wire.host = self.host
        self.number = 0
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start host and node."""
        self.host.start(self._begin)
        self._begin(self._tell())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def _tell(self) -> None:
        while True:
            self.number += 1
            self.wire.tell(
                node_load("p1", self.number, flow_row("a", 5), sides=(PROXY,), capacity={PROXY: {GET: 90 * MB}})
            )
            await asyncio.sleep(0.1 / PACE)

    async def put(self, *assignments: Any) -> None:
        """Set the assignments in force."""
        await self.story.store.commit(Draft("test", puts=assignments))

    async def told(self, condition: Callable[[Shares], object]) -> None:
        """Wait until the node got such shares."""

        async def holds() -> bool:
            return any(condition(one) for one in self.wire.heard("p1"))

        await wait_until(holds)

    async def stored_report(self) -> BandwidthReport | None:
        """The stored report."""
        raw = await self.story.store.client.get(self.story.store.keys.bandwidth)
        return BandwidthReport.decode(raw) if isinstance(raw, bytes) else None

    async def close(self) -> None:
        """Stop host and node."""
        await cancel_tasks(self.tasks, again=0.2)
        await self.host.close()
        await self.story.store.close()


def scene(redis_url: str, tell: Callable[[Scene], Awaitable[None]], owner: Owner | None = None) -> None:
    """Run ``tell`` with a scene."""

    async def test() -> None:
        made = Scene(redis_url, owner)
        try:
            await tell(made)
        finally:
            await made.close()

    run_scenario(test())


__all__ = ["Owner", "Scene", "Wire", "scene"]
