"""EXISTING: an action creates one rewrite when it first comes into force, and its end cancels the rewrite."""

from dataclasses import replace

import pytest
from tests.support.actors.host import BUSY, HostScenario, run_scenario, wait_until

from sluice_actors.testing import plan_of
from sluice_core.messages.policies import ALL, GROUP, TENANT, Entry, Target
from sluice_core.messages.registry import TENANT_MEMBER
from sluice_core.store.records import Draft
from sluice_dsl.plan import PERSISTENT, static_assignments
from sluice_rewrites import operations
from sluice_rewrites.accounts import open_requests


def existing(plan):
    return replace(plan, actions=tuple(replace(one, existing=True) for one in plan.actions))


@pytest.fixture
def story(redis_server):
    return HostScenario(redis_server.url)


async def jobs(story):
    """Id → job, without cancelled ones."""
    found = await story.store.run(operations.JOBS.read_all(story.store.keys))
    return {name: job for name, job in found.items() if job.state in ("running", "collecting")}


async def until_jobs(story, *targets):
    """Wait until there are jobs of exactly these accounts, containers and prefixes."""

    async def condition():
        return sorted((job.account, job.container, job.prefix) for job in (await jobs(story)).values()) == [*targets]

    await wait_until(condition)
    return list((await jobs(story)).values())


async def put(story, name, plan, **more):
    """Put a static policy into force, as the API does."""
    policy = await story.policy(name, plan)
    await story.store.commit(Draft("api", puts=static_assignments(name, plan, policy.created), **more))


async def settled(story, host):
    """Return when the host has handled the last change."""
    head = await story.store.head()

    async def condition():
        return host.report()["epoch"] == head.epoch and not host.existing_rewrites._work.is_set()

    await wait_until(condition)


def test_a_static_policy_orders_one_rewrite_and_its_end_cancels_it(story):
    async def test():
        async with story.host() as host:
            await host.synced.wait()
            await put(story, "p1", existing(plan_of(True, "AUTH_a/c")))
            (job,) = await until_jobs(story, ("AUTH_a", "c", ""))
            assert (job.goal, job.by) == ("policies", "policy p1")
            assert job.epoch >= 2
            dropped = tuple(one.id for one in await story.store.assignments())
            await story.store.commit(Draft("api", drops=dropped))
            await until_jobs(story)
            await put(story, "p1", existing(plan_of(True, "AUTH_a/c")))  # like a policy that is enabled again
            await until_jobs(story, ("AUTH_a", "c", ""))
            await story.store.commit(Draft("api", policy_drops=("p1",)))
            await until_jobs(story)
        await story.store.close()

    run_scenario(test())


def test_another_host_orders_nothing_twice_and_what_it_missed(story):
    async def test():
        async with story.host() as host:
            await host.synced.wait()
            await put(story, "p1", existing(plan_of(True, "AUTH_a")))
            before = await until_jobs(story, ("AUTH_a", "", ""))
        await put(story, "p2", existing(plan_of(True, "AUTH_b")))
        async with story.host(host="h2") as host:
            await host.synced.wait()
            after = await until_jobs(story, ("AUTH_a", "", ""), ("AUTH_b", "", ""))
            assert before[0] in after
        await story.store.commit(Draft("api", policy_drops=("p1", "p2")))
        async with story.host(host="h3"):
            await until_jobs(story)
        await story.store.close()

    run_scenario(test(), 40)


def test_a_dynamic_policy_orders_with_its_first_firing(story):
    async def test():
        async with story.host() as host:
            await story.policy("p1", existing(plan_of(BUSY, lives=(PERSISTENT,))))
            await story.ready(host, "p1")
            await story.feed(host, 1, 1)
            await settled(story, host)
            assert await jobs(story) == {}
            await story.feed(host, 8, 8, 1, 8)
            await until_jobs(story, ("AUTH_test", "", ""))
        await story.store.close()

    run_scenario(test())


def test_a_group_is_its_members_and_an_action_without_existing_orders_nothing(story):
    async def test():
        members = tuple(Entry(TENANT_MEMBER, f"gold/AUTH_{name}", {}) for name in "ab")
        async with story.host() as host:
            await host.synced.wait()
            await story.store.commit(Draft("api", entries=members))
            await put(story, "p0", plan_of(True, "AUTH_z"))
            await put(story, "p1", existing(plan_of(True, Target(TENANT, GROUP, "gold"))))
            await until_jobs(story, ("AUTH_a", "", ""), ("AUTH_b", "", ""))
        await story.store.close()

    run_scenario(test())


def test_an_action_that_was_changed_is_another_one(story):
    async def test():
        async with story.host() as host:
            await host.synced.wait()
            plan = existing(plan_of(True, "AUTH_a"))
            await put(story, "p1", plan)
            (first,) = await until_jobs(story, ("AUTH_a", "", ""))
            changed = replace(plan, actions=(replace(plan.actions[0], params={"level": 3}),))
            await put(story, "p1", changed, policy_drops=("p1",))

            async def condition():
                found = await jobs(story)
                return len(found) == 1 and first.id not in found

            await wait_until(condition)
        await story.store.close()

    run_scenario(test())


@pytest.mark.parametrize("failed", [False, True])
def test_an_action_for_all_asks_for_all_accounts_and_asks_anew_when_it_comes_back(story, failed):
    async def test():
        keys, run = story.store.keys, story.store.run
        async with story.host() as host:
            await host.synced.wait()
            plan = existing(plan_of(True, Target(TENANT, ALL, "")))
            await put(story, "p1", plan)
            (first,) = await until_jobs(story, ("", "", ""))
            assert first.state == "collecting"
            assert await run(open_requests(keys)) == {first.request}
            if failed:
                assert await run(operations.fail_collecting(keys, first, "nobody has read them"))
            dropped = tuple(one.id for one in await story.store.assignments())
            await story.store.commit(Draft("api", drops=dropped))
            await until_jobs(story)
            await put(story, "p1", plan)
            (again,) = await until_jobs(story, ("", "", ""))
            assert again.request != first.request
            assert await run(open_requests(keys)) == {again.request}
        await story.store.close()

    run_scenario(test())
