"""Three actor hosts: one is killed, put to sleep, or cut off from Redis; each crossing fires exactly once.

Each tenant is busy for one window in ten, so that whatever is missed in the few seconds of a take-over shows
as a crossing that did not fire, and whatever is decided by two hosts as one that fired twice.
"""

import asyncio
import contextlib
import logging
import signal

import pytest
from tests.support.actors.host import BUSY, HostScenario, run_scenario
from tests.support.actors.team import Cable, HostProcess, ScheduledNodes

from sluice_actors.testing import plan_of
from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.messages.policies import Target

TENANTS = [f"AUTH_{number:03d}" for number in range(60)]
PERIOD = 10


async def wait_until(condition):
    """Wait for what other processes do; ``run_scenario`` says how long at most."""
    while not await condition():
        await asyncio.sleep(0.1)


@pytest.fixture(autouse=True)
def quiet_pika():
    """pika reports each step of each failed attempt to reach the broker that is not there."""
    logger = logging.getLogger("pika")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers")
    with (
        RedisServer(free_port(), folder, tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), folder / "rabbit", tied=True) as rabbit,
    ):
        yield redis, rabbit


def busy(number, window):
    return (window + number) % PERIOD == 0


def schedule(window):
    return {name: 9.0 if busy(number, window) else 1.0 for number, name in enumerate(TENANTS)}


class Team:
    """Three hosts on one store, h1 by a cable, and policies for many tenants."""

    def __init__(self, servers, folder):
        self._redis, rabbit = servers
        self.story = HostScenario(self._redis.url)
        self.cable = Cable(self._redis.port)
        self.nodes = ScheduledNodes(rabbit.url, schedule)
        self._folder = folder
        self._options = {"amqp_url": rabbit.url, "redis_prefix": self.story.prefix}
        self.hosts = {}

    def host(self, name):
        port = self.cable.port if name == "h1" else self._redis.port
        url = f"redis://127.0.0.1:{port}/0"
        return HostProcess(name, self._folder, self.story.store, redis_url=url, **self._options)

    async def start(self):
        await self.cable.start()
        for number, name in enumerate(TENANTS):
            await self.story.policy(f"p{number}", plan_of(BUSY, name))
        await self.story.policy("everybody", plan_of(BUSY, Target("tenant", "all")))
        await self.nodes.start()
        for name in ("h1", "h2", "h3"):
            self.hosts[name] = self.host(name)
            await self.hosts[name].start()
        await self.divided("h1", "h2", "h3")

    async def divided(self, *names):
        """Wait until these hosts share all policies."""

        async def so():
            reports = [await self.hosts[name].report() for name in names]
            teams = [one.get("team", {}) for one in reports]
            members = all(one.get("members") == sorted(names) and one["slots"] for one in teams)
            return members and sum(one["actors"] for one in reports) == len(TENANTS) + 1

        await wait_until(so)

    async def windows(self, count):
        """Wait until so many more windows were published; the last one."""

        async def begun():
            return self.nodes.published

        async def so():
            return max(self.nodes.published) >= end

        await wait_until(begun)
        end = max(self.nodes.published) + count
        await wait_until(so)
        return end

    async def fired(self, first, last):
        """Every crossing from ``first`` to ``last`` was set once and taken back once, and nothing else was."""

        async def over():
            states = await self.story.store.states()
            return all(
                f"p{number}" in states and max(one.window for one in states[f"p{number}"].firings) >= window + 2
                for number in range(len(TENANTS))
                for window in range(first, last + 1)
                if busy(number, window)
            )

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await wait_until(over)
        wrong = []
        states = await self.story.store.states()
        for number in range(len(TENANTS)):
            expected = [
                (what, window + more)
                for window in range(first, last + 1)
                if busy(number, window)
                for what, more in (("set", 0), ("taken_back", 2))
            ]
            state = states.get(f"p{number}")
            found = [(one.what, one.window) for one in state.firings] if state else []
            found = [one for one in found if first <= one[1] - 2 * (one[0] == "taken_back") <= last]
            if found != expected:
                wrong.append((number, found, expected))
        assert not wrong, (first, last, wrong[:3], len(wrong))

    async def close(self):
        await self.nodes.close()
        for host in self.hosts.values():
            host.signal(signal.SIGCONT) if host.running else None
            await host.end(signal.SIGTERM)
        await self.cable.cut()
        await self.story.store.close()

    def logs(self):
        return "".join(host.log.read_text() for host in self.hosts.values())


@contextlib.asynccontextmanager
async def team_of(servers, folder):
    team = Team(servers, folder)
    try:
        await team.start()
        yield team
    finally:
        await team.close()
    assert "Traceback" not in team.logs()


def test_one_of_three_hosts_is_killed_and_comes_back(servers, tmp_path):
    async def test():
        async with team_of(servers, tmp_path) as team:
            first = await team.windows(1) + 1
            await team.windows(4)
            await team.hosts["h2"].end(signal.SIGKILL)
            await team.divided("h1", "h3")
            await team.windows(4)
            await team.hosts["h2"].start()
            await team.divided("h1", "h2", "h3")
            await team.fired(first, await team.windows(4) - 3)

    run_scenario(test(), 120)


def test_a_host_that_slept_wakes_up_with_an_old_view(servers, tmp_path):
    async def test():
        async with team_of(servers, tmp_path) as team:
            first = await team.windows(1) + 1
            await team.windows(3)
            team.hosts["h3"].signal(signal.SIGSTOP)
            await team.divided("h1", "h2")
            await team.windows(4)
            team.hosts["h3"].signal(signal.SIGCONT)
            await team.divided("h1", "h2", "h3")
            await team.fired(first, await team.windows(4) - 3)

    run_scenario(test(), 120)


def test_a_host_is_cut_off_from_redis_and_comes_back(servers, tmp_path):
    async def test():
        async with team_of(servers, tmp_path) as team:
            first = await team.windows(1) + 1
            await team.windows(3)
            await team.cable.cut()
            await team.divided("h2", "h3")
            await team.windows(4)
            await team.cable.start()
            await team.divided("h1", "h2", "h3")
            await team.fired(first, await team.windows(4) - 3)
            log = team.hosts["h1"].log.read_text()
            assert log.count("not in the team of actor hosts") == 1

    run_scenario(test(), 120)
