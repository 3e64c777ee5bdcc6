"""The allocating host: its reports, its rounds, its messages; on a bus without a broker."""

import asyncio
import json
import logging
import threading
from dataclasses import replace

import pytest
from tests.support.actors.allocator import PACE, Owner, scene
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, node_load
from tests.support.actors.host import HostScenario, run_scenario, wait_until

from sluice_actors.bandwidth import service
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Flow, NodeLoad
from sluice_core.messages.bandwidth_report import IdleFlowReport
from sluice_core.messages.policies import Change
from sluice_core.store.records import Draft


@pytest.fixture(autouse=True)
def quiet_pika():
    """pika logs each step of each failed attempt to reach the missing broker."""
    logger = logging.getLogger("pika")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


def test_a_round_is_made_each_second_and_reported(redis_server):
    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30), bandwidth_policy("b", get_bw=30))
        made.start()
        await made.told(lambda shares: shares.rows)
        await made.told(lambda shares: shares.number == made.wire.heard("p1")[0].number + 2)
        first, second = made.wire.heard("p1")[:2]
        assert (first.term, second.number - first.number) == (7, 1)
        assert [(one.account, round(one.rate / MB)) for one in second.rows] == [("a", 90)]
        found = await made.stored_report()
        assert found.nodes[0]["node"] == "p1"
        assert found.flows[0]["policies"]
        assert 0 < await made.story.store.client.ttl(made.story.store.keys.bandwidth) <= 10
        assert json.dumps(made.host.report())
        assert made.host.report()["dividing"]

    scene(redis_server.url, tell)


def test_a_host_without_ownership_neither_receives_nor_publishes(redis_server):
    owner = Owner(False)

    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await asyncio.sleep(0)
        assert not made.wire.patterns
        owner.now(True, made.host)
        await made.told(lambda shares: shares.rows and shares.term == 8)
        owner.now(False, made.host)
        assert not made.wire.patterns
        assert made.host.report() == {"dividing": False}
        said = len(made.wire.sent)
        await asyncio.sleep(1.3 / PACE)  # a whole round, in which nothing must happen
        assert len(made.wire.sent) == said
        owner.now(True, made.host)
        await made.told(lambda shares: shares.term == 9)

    scene(redis_server.url, tell, owner)


def test_nothing_is_published_before_the_objectives_are_loaded(redis_server, monkeypatch):
    async def tell(made):
        read, may = made.host.load_objectives, asyncio.Event()

        async def late():
            await may.wait()
            await read()

        monkeypatch.setattr(made.host, "load_objectives", late)
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await asyncio.sleep(1.5 / PACE)  # at least one second passes
        assert not made.wire.sent
        may.set()
        await made.told(lambda shares: True)
        assert made.wire.heard("p1")[0].rows

    scene(redis_server.url, tell)


def test_changes_are_applied_also_while_objectives_are_loaded(redis_server):
    async def tell(made):
        made.start()
        await made.told(lambda shares: not shares.rows)
        made.host.apply(Change(1, "h", 0.0, puts=(bandwidth_policy("a", get_bw=30),)))
        await made.told(lambda shares: shares.rows)
        await made.put(bandwidth_policy("a", get_bw=20))
        made.host.reload()
        made.host.apply(Change(1, "h", 0.0, drops=("a.0",)))
        said = len(made.wire.heard("p1"))

        async def let_go():
            return any(not one.rows for one in made.wire.heard("p1")[said:])

        await wait_until(let_go)

    scene(redis_server.url, tell)


def test_undecodable_messages_are_counted_and_logged_once(redis_server, caplog):
    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await made.told(lambda shares: True)
        for body in (b"", b"\x81", NodeLoad("p9", 1.0, 1.0, 1).encode()[:-3], b"nonsense"):
            made.wire.tell(node_load("p9", 1), body)

        async def counted():
            return made.host.undecodable == 4

        await wait_until(counted)
        assert caplog.text.count("`load.p9`") == 1

    scene(redis_server.url, tell)


def test_rounds_without_objectives_are_published_three_times_and_then_rarely(redis_server, monkeypatch):
    async def tell(made):
        made.start()
        await made.told(lambda shares: True)
        host, allocator = made.host, made.host._allocator
        made.wire.sent.clear()
        host._quiet = 0
        for _ in range(20):
            await host._round(allocator)
        assert len(made.wire.heard("p1")) == 3 + 4

    scene(redis_server.url, tell)


def test_messages_that_arrive_during_a_round_are_applied_after_it(redis_server):
    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await made.told(lambda shares: shares.rows)
        host, loop = made.host, asyncio.get_running_loop()
        allocator, begun, go_on = host._allocator, asyncio.Event(), threading.Event()
        divide = allocator.allocate

        def slow(*given):
            loop.call_soon_threadsafe(begun.set)
            assert go_on.wait(10)
            return divide(*given)

        allocator.allocate = slow
        await begun.wait()
        made.wire.tell(node_load("p2", 1, flow_row("b", 5), sides=(PROXY,)))
        host.apply(Change(1, "h", 0.0, puts=(bandwidth_policy("b", get_bw=10),)))
        assert "p2" not in allocator.loads.nodes
        assert not allocator.objectives.for_flow(Flow("b", GET)).policies
        said = len(made.wire.heard("p2"))
        go_on.set()
        allocator.allocate = divide

        async def taken():
            return any(one.rows for one in made.wire.heard("p2")[said:])

        await wait_until(taken)

    scene(redis_server.url, tell)


def test_shares_do_not_wait_for_the_reports(redis_server):
    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await made.told(lambda shares: shares.rows)
        host, loop = made.host, asyncio.get_running_loop()
        allocator, begun, go_on = host._allocator, asyncio.Event(), threading.Event()
        divide = allocator.allocate

        def slow(*given):
            done = divide(*given)

            def show():
                loop.call_soon_threadsafe(begun.set)
                assert go_on.wait(10)
                return done.reports

            return replace(done, make_reports=show)

        allocator.allocate = slow
        await begun.wait()
        number = made.wire.heard("p1")[-1].number
        try:
            assert number == host.report()["number"]
            made.wire.tell(node_load("p2", 1, flow_row("b", 5), sides=(PROXY,)))
            assert "p2" not in allocator.loads.nodes  # the report is of the former round
        finally:
            go_on.set()
            allocator.allocate = divide

        async def shown():
            found = await made.stored_report()
            return found is not None and found.number >= number and "p2" in allocator.loads.nodes

        await wait_until(shown)

    scene(redis_server.url, tell)


def test_idle_floors_are_written_when_they_change(redis_server):
    async def tell(made):
        client, keys = made.story.store.client, made.story.store.keys
        writes = []

        async def run(operation, before=made.story.store.run):
            writes.extend(command for command in operation.commands if command[0] == "SET")
            return await before(operation)

        made.host._store.run = run
        await made.put(*(bandwidth_policy(f"idle{number}", get_bw=1) for number in range(50)))
        made.start()

        async def shown(after=0, floors=50):
            """The report after the next one with a number above ``after``, which has ``floors`` floors."""

            async def holds():
                found = await made.stored_report()
                return found is not None and found.number > after + 1 and found.idle == floors

            await wait_until(holds)
            return await made.stored_report()

        first = await shown()
        assert [one["account"] for one in first.flows] == ["a"]
        stored = await client.get(keys.promises(first.promises))
        assert {one["account"] for one in IdleFlowReport.decode(stored).rows} == {
            f"idle{number}" for number in range(50)
        }
        assert 0 < await client.ttl(keys.promises(first.promises)) <= 10
        then = await shown(first.number)
        assert then.promises == first.promises
        assert [command[1] for command in writes if command[1] != keys.bandwidth] == [keys.promises(first.promises)]
        await client.delete(keys.promises(first.promises))
        await shown(then.number)
        assert await client.get(keys.promises(first.promises)) == stored
        await made.put(bandwidth_policy("new", get_bw=1))
        made.host.reload()
        changed = await shown(floors=51)
        assert len(IdleFlowReport.decode(await client.get(keys.promises(changed.promises))).rows) == 51

    scene(redis_server.url, tell)


def test_rounds_go_on_without_redis(redis_server):
    async def tell(made):
        await made.put(bandwidth_policy("a", get_bw=30))
        made.start()
        await made.told(lambda shares: shares.rows)

        async def away(operation):
            raise service.DecodeError("redis is away")

        made.story.store.run = away
        made.host.reload()
        last = made.wire.heard("p1")[-1].number
        await made.told(lambda shares: shares.number > last + 1 and shares.rows)

    scene(redis_server.url, tell)


def test_a_host_allocates_for_its_cluster(redis_server):
    async def test():
        story = HostScenario(redis_server.url)
        async with story.host() as host:
            await host.synced.wait()
            await wait_until(lambda: _reads(host))
            assert host.report()["bandwidth"]["dividing"]
            assert host.bandwidth._allocator is not None
            await story.store.commit(Draft("test", puts=(bandwidth_policy("a", get_bw=30),)))

            async def known():
                return host.bandwidth._allocator.objectives.has_floors(GET)

            await wait_until(known)
        await story.store.close()

    async def _reads(host):
        return host.report()["bandwidth"].get("objectives")

    run_scenario(test())
