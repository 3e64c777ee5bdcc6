"""The actor host on a real Redis: policies are created and deleted, decisions are written, hosts replace each other."""

import time
from dataclasses import replace

import pytest
from tests.support.actors.host import BUSY, HostScenario, cancel_task, run_scenario, wait_until

from sluice_actors.testing import plan_of
from sluice_core.messages.policies import Policy, Target
from sluice_core.store.records import Draft
from sluice_core.testing import assignment
from sluice_dsl.plan import PERSISTENT, TRANSIENT


@pytest.fixture
def story(redis_server):
    return HostScenario(redis_server.url)


def test_a_policy_created_later_fires_and_is_taken_back(story):
    async def test():
        async with story.host() as host:
            await host.synced.wait()
            await story.policy()
            await story.ready(host, "p1")
            await story.feed(host, 1, 8)
            await story.has("p1.0")
            state = await story.store.state("p1")
            assert (state.status, [one.what for one in state.firings]) == ("active", ["set"])
            (found,) = (await story.assignments()).values()
            assert (found.policy, found.keyword, found.when, found.created) == ("p1", "filter0", True, 5)
            await story.feed(host, 1, 1)
            await story.has()
            state = await story.state_is("p1", "waiting")
            assert [one.what for one in state.firings] == ["set", "taken_back"]
            assert state.members == {}
        await story.store.close()

    run_scenario(test())


def test_a_quiet_policy_writes_nothing(story):
    async def test():
        await story.policy()
        async with story.host() as host:
            await story.ready(host, "p1")
            head = await story.store.head()
            await story.feed(host, 1, 2, 3, 1)
            assert host.writer.pending == 0
        assert await story.store.head() == head
        assert await story.store.state("p1") is None
        await story.store.close()

    run_scenario(test())


def test_one_window_of_many_policies_is_one_change(story):
    async def test():
        for number in range(50):
            await story.policy(f"p{number}", plan_of(BUSY, f"AUTH_{number}"))
        async with story.host() as host:
            await story.ready(host, *(f"p{number}" for number in range(50)))
            before = (await story.store.head()).epoch
            await story.feed(host, {f"AUTH_{number}": 8 for number in range(50)})
            await story.has(*(f"p{number}.0" for number in range(50)))
            assert (await story.store.head()).epoch == before + 1
        await story.store.close()

    run_scenario(test())


def test_changes_are_no_bigger_than_a_batch(story):
    async def test():
        for number in range(7):
            await story.policy(f"p{number}", plan_of(BUSY, f"AUTH_{number}", lives=(TRANSIENT,) * 2))
        async with story.host() as host:
            host.writer.batch = 6
            await story.ready(host, *(f"p{number}" for number in range(7)))
            before = (await story.store.head()).epoch
            await story.feed(host, {f"AUTH_{number}": 8 for number in range(7)})
            await story.has(*(f"p{number}.{action}" for number in range(7) for action in (0, 1)))
            changes = await story.store.changes_after(before)
            assert len(changes) >= 3
            assert max(len(change.puts) for change in changes) <= 6
        await story.store.close()

    run_scenario(test())


def test_members_of_all_get_assignments_of_their_own(story):
    async def test():
        await story.policy(plan=plan_of(BUSY, Target("tenant", "all")))
        async with story.host() as host:
            await story.ready(host, "p1")
            await story.feed(host, {"A": 8, "B": 1}, {"A": 8, "B": 8})
            await story.has("p1.0@A", "p1.0@B")
            assert {one.member for one in (await story.assignments()).values()} == {"A", "B"}
        await story.store.close()

    run_scenario(test())


def test_a_restarted_host_goes_on_where_the_first_one_was(story):
    async def test():
        await story.policy("p1")
        await story.policy("p2", plan_of(BUSY, lives=(PERSISTENT,)))
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            await story.feed(host, 8)
            await story.has("p1.0", "p2.0")
            await story.feed(host, 1)
        before = await story.store.head()
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            await story.feed(host, 8, 1)
            assert (await story.store.head()) == before
            assert set(await story.assignments()) == {"p1.0", "p2.0"}
            await story.feed(host, 1)
            await story.has("p2.0")
        await story.store.close()

    run_scenario(test())


def test_a_host_corrects_a_store_that_is_not_what_the_states_say(story):
    async def test():
        await story.policy("p1")
        await story.policy("p2")
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            await story.feed(host, 8)
            await story.has("p1.0", "p2.0")
        static = assignment("static.0", "AUTH_test")
        await story.store.commit(Draft("test", drops=("p1.0",), puts=(assignment("p2.7", "AUTH_test"), static)))
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            await story.has("p1.0", "p2.0", "static.0")
        await story.store.close()

    run_scenario(test())


def test_what_remains_of_a_condition_is_written_again_when_it_changes(story):
    async def test():
        both = ["or", ["metric", "PUTS_SEC", ">", 9], ["and", BUSY, ["size", ">", 5]]]
        await story.policy(plan=plan_of(both))
        async with story.host() as host:
            await story.ready(host, "p1")

            async def applies_to(when):
                async def condition():
                    return [one.when for one in (await story.assignments()).values()] == [when]

                await wait_until(condition)

            await story.feed(host, 8)
            await applies_to(["size", ">", 5])
            await story.feed(host, 12)
            await applies_to(True)
        await story.store.close()

    run_scenario(test())


def test_a_deleted_policy_gets_nothing_back(story):
    async def test():
        await story.policy("p1")
        await story.policy("p2")
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            cancel_task(host, "follow")  # the host does not receive the change: its commit must be refused
            await story.store.commit(Draft("test", policy_drops=("p1",)))
            await story.feed(host, 8)
            await story.has("p2.0")
            assert await story.store.state("p1") is None
            assert set(host.policies.actors) == {"p2"}
        await story.store.close()

    run_scenario(test())


def test_a_deletion_stops_the_actor(story):
    async def test():
        await story.policy("p1")
        async with story.host() as host:
            await story.ready(host, "p1")
            await story.feed(host, 8)
            await story.has("p1.0")
            await story.store.commit(Draft("test", policy_drops=("p1",)))
            await story.ready(host)
            await story.has()
            assert host.receiver.consumer.bindings == ()
        await story.store.close()

    run_scenario(test())


def test_a_replaced_policy_gets_a_new_actor_and_loses_what_it_no_longer_wants(story):
    async def test():
        policy = await story.policy("p1", plan_of(BUSY, lives=(TRANSIENT, TRANSIENT)))
        async with story.host() as host:
            await story.ready(host, "p1")
            first = host.policies.actors["p1"]
            await story.feed(host, 8)
            await story.has("p1.0", "p1.1")
            await story.store.commit(Draft("test", policies=(replace(policy, plan=plan_of(BUSY).to_data()),)))
            await story.has("p1.0")
            assert host.policies.actors["p1"] is not first
            await story.feed(host, 1, 1)
            await story.has()
        await story.store.close()

    run_scenario(test())


def test_a_plan_that_cannot_run_fails_its_policy_alone(story):
    async def test():
        await story.policy("good")
        bad = Policy("bad", "FOR", "FOR", {"language": 1}, True, 5)
        await story.store.commit(Draft("test", policies=(bad,)))
        async with story.host() as host:
            await story.ready(host, "good")
            state = await story.state_is("bad", "failed")
            assert "not a Plan" in state.reason
            await story.feed(host, 8)
            await story.has("good.0")
            await story.store.commit(Draft("test", policies=(replace(bad, plan=plan_of(BUSY).to_data()),)))
            state = await story.state_is("bad", "waiting")
            assert state.reason == ""
        await story.store.close()

    run_scenario(test())


def test_watched_policies_show_their_values(story):
    async def test():
        await story.policy("p1")
        await story.policy("p2")
        async with story.host() as host:
            await story.ready(host, "p1", "p2")
            await story.store.watch("p1", 10)
            story.clock.now = time.time()
            story.window = int(time.time())
            await story.feed(host, 7)

            async def shown():
                return await story.store.observed("p1") is not None

            await wait_until(shown)
            assert await story.store.observed("p1") == {
                "window": story.window, "values": {"PUTS_SEC": 7}, "members": {},
            }  # fmt: skip
            assert await story.store.observed("p2") is None
            report = (await story.store.hosts())["h1"]
            assert (report["actors"], report["bus"], report["metrics"]["PUTS_SEC"]["nodes"]) == (2, False, 1)
        await story.store.close()

    run_scenario(test())


def test_a_wiped_redis_stops_the_actors_and_gets_nothing_written(story):
    async def test():
        await story.policy("p1")
        async with story.host() as host:
            await story.ready(host, "p1")
            keys = [key async for key in story.store.client.scan_iter(f"{story.prefix}:*")]
            await story.store.client.delete(*keys)
            await story.feed(host, 8)
            await story.ready(host)
            assert await story.assignments() == {}
            await story.policy("p2")
            await story.ready(host, "p2")
            await story.feed(host, 8)
            await story.has("p2.0")
        await story.store.close()

    run_scenario(test())
