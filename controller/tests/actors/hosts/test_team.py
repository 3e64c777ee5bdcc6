"""Teams on a real Redis: owners of slots, and hosts that are silent, cut off, or lose slots."""

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from tests.support.actors.host import BUSY, HostScenario, cancel_task, run_scenario, wait_until

from sluice_actors.hosts.members import GROUP, Members, _Driver
from sluice_actors.hosts.team import OwnerRing, Team
from sluice_actors.policies.policy_runner import Replay
from sluice_actors.testing import batch_of, plan_of
from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import Fenced
from sluice_core.messages.policies import Firing, PolicyState, Target
from sluice_core.store import fencing
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore

#: Short; 20 of these may be missed, see ``conftest``.
BEAT = 0.1


@pytest.fixture
def story(redis_server):
    return HostScenario(redis_server.url)


class TeamMember:
    """A team that rebalances after each change and at intervals, as a host does."""

    def __init__(self, story, name):
        self.team = Team(story.store, name, story.url, BEAT)
        self.moved = asyncio.Event()
        self.team.on_change = self.moved.set
        self.gained, self.lost = set(), set()
        self._task = None
        self._over = False

    def start(self):
        self.team.start()
        self._task = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self):
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * BEAT):
                    await self.moved.wait()
            self.moved.clear()
            if self._over:
                return
            moved = await self.team.rebalance()
            self.gained |= moved.gained
            self.lost |= moved.lost

    async def rest(self):
        """Rebalance no more."""
        self._over = True
        self.moved.set()
        await self._task

    async def close(self):
        await self.rest()
        await self.team.close()


@asynccontextmanager
async def team_members(story, *names):
    async with AsyncExitStack() as stack:
        made = [TeamMember(story, name) for name in names]
        for one in made:
            one.start()
            stack.push_async_callback(one.close)
        yield made
    await story.store.close()


async def shared(story, *teams):
    """Wait until ``teams`` own all slots, each slot by one of them, and Redis agrees."""

    async def so():
        held = [team._held for team in teams]
        owners = await story.store.run(fencing.owners(story.store.keys))
        # The first member owns everything until it sees the second.
        divided = all(held) and sum(map(len, held)) == fencing.SLOTS
        return divided and {k: v for one in held for k, v in one.items()} == owners

    await wait_until(so)


def test_hosts_share_all_slots_and_a_host_that_leaves_gives_its_slots_to_the_others(story):
    async def test():
        async with team_members(story, "a", "b", "c") as (a, b, c):
            await shared(story, a.team, b.team, c.team)
            await wait_until(lambda: asyncio.sleep(0, a.team.members == ("a", "b", "c")))
            assert min(len(one.team.owned_slots) for one in (a, b, c)) > fencing.SLOTS / 6
            kept = dict(b.team._held)
            await c.team.close()
            await shared(story, a.team, b.team)
            assert kept.items() <= b.team._held.items()  # b keeps its slots, under the same terms
            await wait_until(lambda: asyncio.sleep(0, b.team.acting and b.team.members == ("a", "b")))
            report = b.team.report()
            assert (report["members"], report["acting"], report["slots"]) == (["a", "b"], True, len(b.team.owned_slots))
            assert report["term"] >= 1
            assert report["lag"] < 5

    run_scenario(test(), 60)


def test_a_host_without_heartbeats_is_no_member_any_more(story):
    async def test():
        ghost = _Driver(story.url, "ghost", f"{story.prefix}:team", 1.0)
        await asyncio.to_thread(ghost.start)
        await asyncio.to_thread(lambda: ghost.create_group(GROUP).get())
        await asyncio.to_thread(lambda: ghost.join_group(GROUP).get())
        async with team_members(story, "a") as (a,):
            await wait_until(lambda: asyncio.sleep(0, a.team.members == ("a", "ghost")))
            await wait_until(lambda: asyncio.sleep(0, a.team.members == ("a",)))
            await shared(story, a.team)
            await asyncio.to_thread(ghost.stop)
            ghost.hang_up()

    run_scenario(test(), 60)


def test_a_host_that_was_declared_dead_joins_again_and_claims_its_slots_anew(story):
    async def test():
        async with team_members(story, "a", "b") as (a, b):
            await shared(story, a.team, b.team)
            gone = a.team.owned_slots
            a.gained.clear()
            # A suspended host: the others take its slots and forget it, and it learns that when it reads the members.
            await story.store.run(fencing.claim(story.store.keys, "b", sorted(gone)))
            await story.store.client.hdel(f"{story.prefix}:team_group:actors", "a")
            await wait_until(lambda: asyncio.sleep(0, a.lost >= gone and a.gained >= gone))
            await shared(story, a.team, b.team)

    run_scenario(test(), 60)


def test_a_slot_claimed_by_another_host_is_claimed_back_only_after_two_looks_at_the_members(story):
    async def test():
        async with team_members(story, "a") as (a,):
            await shared(story, a.team)
            await a.rest()
            robbed = await story.store.run(fencing.claim(story.store.keys, "x", ["7"]))
            looks = a.team._polls
            moved = await a.team.rebalance()
            assert moved.lost == {"7"}
            assert "7" not in a.team.owned_slots or a.team._polls >= looks + 2
            await wait_until(lambda: asyncio.sleep(0, "7" not in a.team._contested))
            moved = await a.team.rebalance()
            assert moved.gained == {"7"}
            assert a.team.fence([_name_in("7")]) != robbed

    run_scenario(test(), 60)


def _name_in(slot):
    return next(name for name in map(str, range(100_000)) if fencing.slot_of(name) == slot)


def test_two_processes_of_one_name_are_logged(story, caplog):
    async def test():
        async with team_members(story, "a") as (a,):
            await shared(story, a.team)
            await story.store.run(fencing.claim(story.store.keys, "a", ["7"]))
            await a.team.rebalance()
        assert "another process claims slots as `a`" in caplog.text

    run_scenario(test(), 60)


def test_a_fence_for_a_slot_of_another_host_refuses_every_change(story):
    async def test():
        team = Team(story.store, "a", story.url, BEAT)
        await story.store.run(fencing.claim(story.store.keys, "a", [fencing.slot_of("p")]))
        assert not team.owns("p")
        assert not team.acting
        with pytest.raises(Fenced):
            await story.store.commit(Draft("a", states=(PolicyState("p"),), fence=team.fence(["p"])))
        assert (await team.rebalance()).gained == frozenset()
        await story.store.close()

    run_scenario(test(), 60)


@pytest.mark.service
def test_a_host_writes_nothing_while_redis_is_away_and_keeps_unclaimed_slots(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    with RedisServer(free_port(), tmp_path, tied=True) as server:
        story = HostScenario(server.url)

        async def test():
            async with team_members(story, "a") as (a,):
                await shared(story, a.team)
                held, gained = dict(a.team._held), set(a.gained)
                a.gained.clear()
                server.kill()
                await wait_until(lambda: asyncio.sleep(0, not a.team.members))
                assert not a.team.acting
                assert a.team.owns("whatever")  # in memory, in case no other host claims the slot meanwhile
                server.start()
                await asyncio.to_thread(server.wait_ready)
                await wait_until(lambda: asyncio.sleep(0, a.team.acting))
                await a.team.rebalance()
                assert a.team._held == held
                assert (gained, a.gained, a.lost) == (set(fencing.all_slots()), set(), set())

        run_scenario(test(), 60)
    assert caplog.text.count("not in the team of actor hosts") == 1


def test_a_membership_thread_that_cannot_reach_redis_ends_on_close():
    async def test():
        heard = []
        members = Members(f"redis://127.0.0.1:{free_port()}/0", "a", "t", 0.05, heard.append)
        members.start()
        await wait_until(lambda: asyncio.sleep(0, heard))
        assert heard[0] == ()
        assert not members.fresh
        await members.close()

    run_scenario(test(), 60)


def test_a_ring_moves_little_when_a_host_comes():
    before, after = OwnerRing(("a", "b", "c")), OwnerRing(("a", "b", "c", "d"))
    moved = [slot for slot in fencing.all_slots() if before.host(slot) != after.host(slot)]
    assert {after.host(slot) for slot in moved} == {"d"}
    assert len(moved) < fencing.SLOTS / 2
    assert OwnerRing(()).host("x") == ""


# -- hosts of a team, with windows made by the test


async def divided(story, *hosts, policies):
    """Wait until each of ``hosts`` runs some of ``policies``, and starts and stops none."""

    async def so():
        actors = [host.policies.actors for host in hosts]
        # Before it sees the others a host runs everything, and actors that they start do not run yet.
        settled = all(actors) and all(one.running for some in actors for one in some.values())
        return settled and sorted(name for some in actors for name in some) == sorted(policies)

    await wait_until(so)


def test_two_hosts_divide_the_policies_and_each_fires_once(story):
    names = [f"p{number}" for number in range(30)]

    async def test():
        for number, name in enumerate(names):
            await story.policy(name, plan_of(BUSY, f"AUTH_{number}"))
        async with (
            story.host(host="a", heartbeat_ms=200) as a,
            story.host(host="b", heartbeat_ms=200) as b,
        ):
            await divided(story, a, b, policies=names)
            await story.feed(a, {f"AUTH_{number}": 8 for number in range(30)})
            story.window -= 1
            await story.feed(b, {f"AUTH_{number}": 8 for number in range(30)})
            await story.has(*(f"{name}.0" for name in names))
            assert all(len(one.firings) == 1 for one in (await story.store.states()).values())
            later = await story.policy("later", plan_of(BUSY, "AUTH_x"))
            await divided(story, a, b, policies=[*names, later.id])
            await wait_until(lambda: asyncio.sleep(0, a.report()["team"]["members"] == ["a", "b"]))
        await story.store.close()

    run_scenario(test(), 40)


def test_a_host_whose_slot_was_taken_writes_the_rest_and_drops_the_actor(story):
    async def test():
        await story.policy("mine")
        await story.policy("taken")
        async with story.host(heartbeat_ms=200) as host:
            await story.ready(host, "mine", "taken")
            robbed = {fencing.slot_of("taken")}
            assert fencing.slot_of("mine") not in robbed
            cancel_task(host, "follow")
            cancel_task(host, "own")  # it learns of no change: only the fence separates it from the store
            await story.store.run(fencing.claim(story.store.keys, "other", sorted(robbed)))
            await story.feed(host, 8)
            await story.has("mine.0")
            assert await story.store.state("taken") is None
            await wait_until(lambda: asyncio.sleep(0, set(host.policies.actors) == {"mine"}))
        await story.store.close()

    run_scenario(test(), 40)


def test_windows_that_a_lost_host_saw_last_are_replayed_by_its_successor(story):
    """Before: a window was true, the decision was never written.  After: it fires, under its own number."""

    async def test():
        await story.policy("p1")
        await story.policy("p2", plan_of(BUSY, Target("tenant", "all")))
        already = (Firing(1.0, "set", "", 1003), Firing(1.0, "taken_back", "", 1005))
        await story.policy("p3")
        await story.store.commit(Draft("t", states=(PolicyState("p3", firings=already),)))
        story.clock.now = 1009.0
        async with story.host(heartbeat_ms=200) as host:
            backlog = host.router.backlog
            for window, value in ((1003, 8), (1004, 1), (1005, 1), (1006, 8), (1007, 1)):
                backlog.add("PUTS_SEC", batch_of("PUTS_SEC", window, {"AUTH_test": value}).encode(), window + 1.05)
            await story.ready(host, "p1", "p2", "p3")

            async def fired():
                states = await story.store.states()
                return {
                    name: [(one.what, one.window) for one in state.firings] for name, state in states.items()
                } == {
                    "p1": [("set", 1003), ("taken_back", 1005), ("set", 1006)],
                    "p2": [("set", 1003), ("taken_back", 1005), ("set", 1006)],
                    "p3": [("set", 1003), ("taken_back", 1005), ("set", 1006)],
                }  # fmt: skip

            await wait_until(fired)
        await story.store.close()

    run_scenario(test(), 60)


def test_a_window_closed_during_a_takeover_does_not_hide_earlier_windows(story, monkeypatch):
    async def test():
        await story.policy("p1")
        story.clock.now = 1009.0
        async with story.host(heartbeat_ms=200) as host:
            for window, value in ((1003, 8), (1004, 1), (1005, 1), (1006, 8), (1007, 1)):
                body = batch_of("PUTS_SEC", window, {"AUTH_test": value}).encode()
                host.router.backlog.add("PUTS_SEC", body, window + 1.05)
            prepare = Replay.prepare

            async def slowly(replay):
                await prepare(replay)
                await host.system.idle()
                story.clock.now = 1009.3
                host.router.aggregators.receive(
                    "metric.PUTS_SEC.node1", batch_of("PUTS_SEC", 1008, {"AUTH_test": 8}).encode()
                )
                story.clock.now = 1009.5
                if host.router.aggregators.get("PUTS_SEC") is not None:
                    host.router.aggregators.close_due("PUTS_SEC")
                await host.system.idle()

            monkeypatch.setattr(Replay, "prepare", slowly)
            await story.ready(host, "p1")

            async def fired():
                state = await story.store.state("p1")
                found = [] if state is None else [(one.what, one.window) for one in state.firings]
                return found == [("set", 1003), ("taken_back", 1005), ("set", 1006)]

            await wait_until(fired)
        await story.store.close()

    run_scenario(test(), 60)


def test_a_replay_without_batches_delivers_nothing(story):
    async def test():
        async with story.host(heartbeat_ms=200) as host:
            replay = Replay(host.router.backlog, ["PUTS_SEC"], story.clock)
            await replay.prepare()
            assert list(replay.deliveries([])) == []
        await story.store.close()

    run_scenario(test(), 60)


def test_reports_of_hosts_that_ended_long_ago_are_deleted(story):
    async def test():
        now = story.clock()
        await story.store.host_report("old", {"at": now - 4000})
        await story.store.host_report("gone", {"at": now - 100})
        async with story.host(heartbeat_ms=200):

            async def tidied():
                hosts = await story.store.hosts()
                return "old" not in hosts and {"h1", "gone"} <= set(hosts)

            await wait_until(tidied)
        await story.store.close()

    run_scenario(test(), 60)


def test_the_team_of_another_prefix_is_another_team(story):
    async def test():
        other = AsyncStore(story.url, f"{story.prefix}x")
        team = Team(other, "b", story.url, BEAT)
        team.start()
        async with team_members(story, "a") as (a,):
            await shared(story, a.team)
            await wait_until(lambda: asyncio.sleep(0, team.members))
            assert (a.team.members, team.members) == (("a",), ("b",))
            await team.close()
        await other.close()

    run_scenario(test(), 60)
