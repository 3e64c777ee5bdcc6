"""The real process with a real RabbitMQ and a Redis that is killed."""

import asyncio
import os
import signal
import sys
import time

import pytest
from tests.support.actors.host import BUSY, HostScenario, Node, run_scenario, wait_until

from sluice_actors.testing import plan_of
from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError


@pytest.fixture
def story(redis_server):
    return HostScenario(redis_server.url)


@pytest.mark.probe
def test_redis_killed_while_a_firing_is_pending(tmp_path):
    with RedisServer(free_port(), tmp_path, tied=True) as server:
        story = HostScenario(server.url)

        async def away():
            try:
                await story.store.head()
            except PeerError:
                return True
            return False

        async def test():
            await story.policy("p1")
            await story.policy("p2", plan_of(BUSY, "AUTH_other"))
            async with story.host() as host:
                await story.ready(host, "p1", "p2")
                server.kill()
                await wait_until(away)
                await story.feed(host, 8, 1, 1, 8)  # back and forth: the latest counts
                await story.feed(host, {"AUTH_other": 8}, {}, {})
                assert host.writer.pending == 2
                server.start()
                await asyncio.to_thread(server.wait_ready)
                state = await story.state_is("p1", "waiting")
                assert [one.what for one in state.firings] == ["set", "taken_back", "set", "taken_back"]
                assert await story.assignments() == {}
                await story.feed(host, 8)
                await story.has("p1.0")
            await story.store.close()

        run_scenario(test())


class Process:
    """The real ``sluice-actors``."""

    def __init__(self, story, rabbit_url, folder):
        self._config = folder / "actors.conf"
        self._config.write_text(
            f"[actors]\nhost = h9\nredis_url = {story.url}\nredis_prefix = {story.prefix}\namqp_url = {rabbit_url}\n"
        )
        self._store = story.store
        self._log = folder / "actors.log"
        self._process = None

    async def start(self):
        """Start it and return when it receives metrics."""
        began = time.time()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        argv = [sys.executable, "-m", "sluice_actors", "--config", str(self._config)]
        with open(self._log, "ab") as log:
            self._process = await asyncio.create_subprocess_exec(*argv, stderr=log, env=environment)

        async def fed():
            assert self._process.returncode is None, self.log
            await self._store.watch("p1", 10.0)
            observed = await self._store.observed("p1")
            return observed is not None and observed["window"] > began

        await wait_until(fed)

    async def end(self, number):
        """Send a signal and return the exit status."""
        if self._process.returncode is None:
            self._process.send_signal(number)
        return await self._process.wait()

    @property
    def log(self):
        return self._log.read_text()


@pytest.mark.functional
def test_from_rabbitmq_to_redis_in_time_with_the_real_process(story, rabbit_server, tmp_path):
    async def test():
        await story.policy()
        process, node = Process(story, rabbit_server.url, tmp_path), Node(rabbit_server.url)
        try:
            await node.start()
            await process.start()
            assert await story.assignments() == {}
            node.rate = 8.0
            await story.has("p1.0")
            (fired,) = (await story.store.state("p1")).firings
            # sent 0.03 s after the window's end, closed 0.25 s after it at the latest
            assert fired.at - (fired.window + 1) < 1.0
            node.rate = 1.0
            await story.has()
            assert await process.end(signal.SIGTERM) == 0
        finally:
            await node.close()
            await process.end(signal.SIGKILL)
        assert "actor host `h9` ended" in process.log
        assert "Traceback" not in process.log
        await story.store.close()

    run_scenario(test())


@pytest.mark.probe
def test_host_and_broker_are_killed_while_a_policy_is_in_force(story, rabbit_server, tmp_path):
    async def test():
        await story.policy()
        process, node = Process(story, rabbit_server.url, tmp_path), Node(rabbit_server.url)
        try:
            await node.start()
            await process.start()
            node.rate = 8.0
            await story.has("p1.0")
            head = await story.store.head()
            await process.end(signal.SIGKILL)
            await process.start()
            rabbit_server.kill()
            await asyncio.sleep(3.5)  # more missing windows than the false ones that end a TRANSIENT action
            rabbit_server.start()
            await asyncio.to_thread(rabbit_server.wait_ready)
            assert await story.store.head() == head
            node.rate = 1.0
            await story.has()
            state = await story.store.state("p1")
            assert [one.what for one in state.firings] == ["set", "taken_back"]
        finally:
            await node.close()
            await process.end(signal.SIGKILL)
        await story.store.close()

    run_scenario(test(), 60)
