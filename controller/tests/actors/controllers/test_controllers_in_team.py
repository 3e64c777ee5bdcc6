"""A global controller in a team of real processes with a real RabbitMQ: it moves when its host is killed."""

from signal import SIGKILL, SIGTERM

import pytest
from tests.support.actors.controllers import BUSY_CODE, Uploads, alive, code_of
from tests.support.actors.host import HostScenario, run_scenario, wait_until
from tests.support.actors.team import HostProcess, ScheduledNodes

from sluice_actors.hosts.team import OwnerRing
from sluice_core.store.fencing import slot_of

pytestmark = pytest.mark.probe


def test_a_controller_moves_when_its_host_is_killed_and_nothing_is_taken_back(redis_server, rabbit_server, tmp_path):
    uploads = Uploads(HostScenario(redis_server.url), tmp_path / "code")
    store = uploads.story.store
    first = OwnerRing(("h1", "h2")).host(f"slot/{slot_of('controller/busy')}")
    second = "h1" if first == "h2" else "h2"
    rates = {"AUTH_a": 8.0}

    async def report(host):
        return (await hosts[host].report()).get("controllers", {}).get("busy", {})

    async def runs(host):
        return (await report(host)).get("state") == "running"

    async def test():
        await uploads.put(code_of(BUSY_CODE))
        nodes = ScheduledNodes(rabbit_server.url, lambda window: dict(rates))
        try:
            await nodes.start()
            for host in hosts.values():
                await host.start()
            await wait_until(lambda: runs(first))
            await uploads.has(a=8)
            assert await report(second) == {}
            head, pid = await store.head(), (await report(first))["pid"]
            await hosts[first].end(SIGKILL)
            await wait_until(lambda: runs(second))
            assert not alive(pid)
            assert await store.head() == head
            rates.update(AUTH_a=1.0, AUTH_b=9.0)
            await uploads.has(b=9)
            assert {one.by for one in await store.changes_after(head.epoch)} == {f"actors@{second}"}
            pid = (await report(second))["pid"]
            assert await hosts[second].end(SIGTERM) == 0
            assert not alive(pid)
            assert "Traceback" not in hosts[second].log.read_text()
        finally:
            await nodes.close()
            for host in hosts.values():
                await host.end(SIGKILL)
        await store.close()

    options = {
        "redis_url": redis_server.url,
        "redis_prefix": uploads.story.prefix,
        "amqp_url": rabbit_server.url,
        "code_dir": uploads.folder,
    }
    hosts = {name: HostProcess(name, tmp_path, store, **options) for name in ("h1", "h2")}
    run_scenario(test(), 90)
