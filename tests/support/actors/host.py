"""For tests of actor hosts on a real store: windows by hand, or from a node that publishes them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from sluice_actors.host import Host
from sluice_actors.settings import OPTIONS, checked
from sluice_actors.testing import batch_of, plan_of
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.messages.policies import Assignment, Policy, PolicyState
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, cancel_tasks
from sluice_dsl.plan import Plan

T = TypeVar("T")

LIMIT: Final = 20.0
BUSY: Final = ["metric", "PUTS_SEC", ">", 3]
#: An address without a server: hosts that get their windows by hand need no broker.
NO_BROKER: Final = "amqp://guest:guest@127.0.0.1:1/%2F"


def run_scenario(story: Coroutine[Any, Any, T], limit: float = LIMIT) -> T:
    """Run ``story`` for at most ``limit`` seconds."""

    async def limited() -> T:
        task = asyncio.get_running_loop().create_task(story)
        await asyncio.wait({task}, timeout=limit)
        await cancel_tasks([task], again=0.2)
        try:
            return task.result()
        except asyncio.CancelledError as ended:
            raise TimeoutError(f"not done within {limit} s") from ended

    return asyncio.run(limited())


async def wait_until(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait until ``condition`` holds in another process; ``run_scenario`` sets the limit."""
    while not await condition():
        await asyncio.sleep(0.005)


def settings(redis_url: str, prefix: str, **more: Any) -> dict[str, Any]:
    """The settings of a host, at their defaults except the given ones."""
    values = {option.name: option.default for option in OPTIONS}
    given = {"redis_url": redis_url, "redis_prefix": prefix, "amqp_url": NO_BROKER, "host": "h1", **more}
    return checked({**values, **given}, "test")


def cancel_task(host: Host, name: str) -> None:
    """End one task of a host."""
    (task,) = (task for task in host._tasks if task.get_name() == name)
    task.cancel()


class WindowClock:
    """Real time, until a window is given by hand: then the time at which it closes."""

    def __init__(self) -> None:
        self.now: float | None = None

    def __call__(self) -> float:
        return time.time() if self.now is None else self.now


class HostScenario:
    """A store (with a prefix of its own), and hosts on it that get their windows by hand."""

    def __init__(self, redis_url: str) -> None:
        self.url = redis_url
        self.prefix = f"t{uuid.uuid4().hex[:8]}"
        self.store = AsyncStore(redis_url, self.prefix)
        self.window = 1000
        self.clock = WindowClock()

    @asynccontextmanager
    async def host(self, **more: Any) -> AsyncIterator[Host]:
        """A running host, one of the team of this store."""
        host = Host(settings(self.url, self.prefix, **more), self.clock)
        host.start()
        try:
            yield host
        finally:
            await host.close()

    async def policy(self, name: str = "p1", plan: Plan | None = None) -> Policy:
        """Store a policy; by default a TRANSIENT one about AUTH_test being busy."""
        plan = plan if plan is not None else plan_of(BUSY)
        policy = Policy(name, "FOR", "FOR", plan.to_data(), plan.dynamic, 5)
        await self.store.commit(Draft("test", policies=(policy,)))
        return policy

    async def feed(self, host: Host, *values: float | Mapping[str, float]) -> None:
        """One window of PUTS_SEC per value: of AUTH_test, or a dictionary of several tenants."""
        for value in values:
            rows = value if isinstance(value, Mapping) else {"AUTH_test": value}
            self.window += 1
            self.clock.now = self.window + 1.5
            batch = batch_of("PUTS_SEC", self.window, rows)
            host.router.aggregators.receive(metric_routing_key("PUTS_SEC", batch.node), batch.encode())
            self.clock.now += 0.5
            host.router.aggregators.close_due("PUTS_SEC")
            await host.system.idle()

    async def assignments(self) -> dict[str, Assignment]:
        """The assignments in force, by id."""
        return {one.id: one for one in await self.store.assignments()}

    async def has(self, *names: str) -> None:
        """Wait until exactly these assignments are in force."""

        async def condition() -> bool:
            return set(await self.assignments()) == set(names)

        await wait_until(condition)

    async def state_is(self, name: str, status: str) -> PolicyState:
        """Wait until a policy's state has this status."""
        while True:
            state = await self.store.state(name)
            if state is not None and state.status == status:
                return state
            await asyncio.sleep(0.005)

    async def ready(self, host: Host, *names: str) -> None:
        """Wait until ``host`` runs exactly these policies."""

        async def condition() -> bool:
            return set(host.policies.actors) == set(names) and all(one.running for one in host.policies.actors.values())

        await host.synced.wait()
        await wait_until(condition)


class Node:
    """Publishes PUTS_SEC of AUTH_test, as an agent does: each second for the one before."""

    def __init__(self, amqp_url: str) -> None:
        self.rate = 1.0
        self._publisher = Publisher(amqp_url)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when it is connected."""
        self._publisher.start()
        await self._publisher.connected.wait()
        self._task = asyncio.get_running_loop().create_task(self._publish())

    async def close(self) -> None:
        """Stop publishing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._publisher.close()

    async def _publish(self) -> None:
        while True:
            now = time.time()
            window = int(now)
            await asyncio.sleep(window + 1.03 - now)
            batch = batch_of("PUTS_SEC", window, {"AUTH_test": self.rate})
            self._publisher.publish(metric_routing_key("PUTS_SEC", "node1"), batch.encode())
