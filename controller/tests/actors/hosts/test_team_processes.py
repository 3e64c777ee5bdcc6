"""Two real processes with a real RabbitMQ: one runs an actor, the other keeps the batches that it would need."""

from signal import SIGKILL, SIGTERM

import pytest
from tests.support.actors.host import BUSY, HostScenario, run_scenario, wait_until
from tests.support.actors.team import HostProcess, ScheduledNodes

from sluice_actors.hosts.team import OwnerRing
from sluice_actors.testing import plan_of
from sluice_core.store import fencing

pytestmark = pytest.mark.probe


def test_an_actor_gets_windows_and_the_other_host_keeps_their_batches(redis_server, rabbit_server, tmp_path):
    story = HostScenario(redis_server.url)
    policy = "p0"
    owner = OwnerRing(("h1", "h2")).host(f"slot/{fencing.slot_of(policy)}")
    other = "h1" if owner == "h2" else "h2"
    rates = {"AUTH_test": 1.0}

    async def test():
        await story.policy(policy, plan_of(BUSY))
        options = {"redis_url": redis_server.url, "redis_prefix": story.prefix, "amqp_url": rabbit_server.url}
        hosts = {name: HostProcess(name, tmp_path, story.store, **options) for name in ("h1", "h2")}
        nodes = ScheduledNodes(rabbit_server.url, lambda window: dict(rates))
        try:
            await nodes.start()
            for host in hosts.values():
                await host.start()

            async def runs():
                ours, theirs = [await hosts[name].report() for name in (owner, other)]
                if not (ours and theirs):
                    return False  # a host publishes no report in its first seconds
                return ours["actors"] == 1 and "PUTS_SEC" in ours["metrics"] and theirs["values"]["kept"] > 0

            await wait_until(runs)
            theirs = await hosts[other].report()
            assert (theirs["actors"], "PUTS_SEC" in theirs["metrics"]) == (0, False)
            rates["AUTH_test"] = 8.0
            await story.has(f"{policy}.0")
            rates["AUTH_test"] = 1.0
            await story.has()
            state = await story.store.state(policy)
            assert [one.what for one in state.firings] == ["set", "taken_back"]
            for host in hosts.values():
                assert await host.end(SIGTERM) == 0
                assert "Traceback" not in host.log.read_text()
        finally:
            await nodes.close()
            for host in hosts.values():
                await host.end(SIGKILL)
        assert await story.store.run(fencing.owners(story.store.keys)) == {}
        await story.store.close()

    run_scenario(test(), 60)
