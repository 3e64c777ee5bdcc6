"""A Redis that lost the last changes and continued: detected also at an equal epoch; adopted as configured."""

import asyncio
import contextlib

import pytest
from tests.support.failover import fail_over

from sluice_agent.agent import Agent
from sluice_agent.settings import OPTIONS, Settings
from sluice_core.messages.policies import Change
from sluice_core.options import OptionError
from sluice_core.store.history_check import HistoryCheck
from sluice_core.store.records import Draft, Head
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment

LIMIT = 60


def commit(store, name):
    return store.commit(Draft("test", puts=(assignment(f"{name}.0", f"AUTH_{name}"),)))


@contextlib.asynccontextmanager
async def agent_of(url, folder, **options):
    agent = Agent(Settings("n1", url, str(folder), report_interval=0.3, replace_wait=0.3, **options))
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def reported(url, state, epoch):
    """The node's first report with this state."""
    store = AsyncStore(url)
    while True:
        for report in await store.nodes():
            if (report.state, report.epoch) == (state, epoch):
                await store.close()
                return report
        await asyncio.sleep(0.05)


def ids(agent):
    return sorted(one.id for one in agent.writer.assignments())


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


@pytest.mark.parametrize("cut", [True, False], ids=["cut off", "connected"])
@pytest.mark.parametrize("more", [1, 3], ids=["as many", "more"])
def test_changes_that_were_lost_and_replaced_by_others_are_noticed(store, redis_server, tmp_path, more, cut):
    url = redis_server.url

    async def story():
        for name in "abc":
            commit(store, name)
        async with agent_of(url, tmp_path / "s") as agent:
            await reported(url, "ok", 3)
            commit(store, "d")
            await reported(url, "ok", 4)
            fail_over(store, 3, assignments=("d.0",), cut=cut)
            for number in range(more):  # before the agent can read them
                commit(store, f"n{number}")
            report = await reported(url, "stale_history", 4)
            assert "another change 4" in report.detail
            assert ids(agent) == ["a.0", "b.0", "c.0", "d.0"], "the last good state"
            store.adopt("operator")
            await reported(url, "ok", 3 + more)
            assert ids(agent) == sorted(["a.0", "b.0", "c.0", *(f"n{number}.0" for number in range(more))])
            commit(store, "last")
            assert not (await reported(url, "ok", 4 + more)).detail

    play(story())


def test_an_agent_that_was_stopped_notices_replaced_changes_too(store, redis_server, tmp_path):
    url = redis_server.url

    async def story():
        for name in "abc":
            commit(store, name)
        async with agent_of(url, tmp_path / "s"):
            await reported(url, "ok", 3)
        fail_over(store, 2, assignments=("c.0",))
        commit(store, "x")
        commit(store, "y")
        async with agent_of(url, tmp_path / "s") as agent:
            assert "another change 3" in (await reported(url, "stale_history", 3)).detail
            assert ids(agent) == ["a.0", "b.0", "c.0"]

    play(story())


@pytest.mark.parametrize("more", [0, 2], ids=["shorter", "overtaken"])
def test_with_adopt_failover_a_node_follows_a_failover_and_reports_it(store, redis_server, tmp_path, more):
    url = redis_server.url

    async def story():
        for name in "ab":
            commit(store, name)
        async with agent_of(url, tmp_path / "s", adopt="failover") as agent:
            assert not (await reported(url, "ok", 2)).detail
            fail_over(store, 1, assignments=("b.0",))
            for number in range(more):
                commit(store, f"n{number}")
            while ids(agent) != ["a.0", *(f"n{number}.0" for number in range(more))]:
                await asyncio.sleep(0.05)
            commit(store, "last")
            report = await reported(url, "ok", 2 + more)
            assert "went along with a failover" in report.detail

    play(story())


def test_with_adopt_failover_another_history_is_still_stale(store, redis_server, tmp_path):
    url = redis_server.url

    async def story():
        old = commit(store, "a").history
        async with agent_of(url, tmp_path / "s", adopt="failover") as agent:
            await reported(url, "ok", 1)
            store.client.flushall()
            new = commit(store, "b").history
            report = await reported(url, "stale_history", 1)
            while new not in report.detail:
                report = await reported(url, "stale_history", 1)
            assert (report.history, ids(agent)) == (old, ["a.0"])

    play(story())


def test_an_unknown_value_of_adopt_is_refused():
    values = {option.name: option.default for option in OPTIONS}
    assert Settings.from_options(values).adopt == "ask"
    with pytest.raises(OptionError, match="`adopt` is `always`, expected ask or failover"):
        Settings.from_options({**values, "adopt": "always"})


@pytest.mark.parametrize(
    ("followed", "position", "found", "broken"),
    [
        (None, Head("h", 3), "d5", False),  # learned
        (Change(3, "h", 5.0, digest="d5"), Head("h", 3), "d5", False),
        (Change(3, "h", 5.0, digest="d5"), Head("h", 3), "d6", True),
        (Change(3, "h", 5.0, digest="d5"), Head("h", 4), "d6", False),  # loaded since
        (Change(3, "h", 5.0, digest="d5"), Head("h", 3), "", False),  # trimmed
    ],
)
def test_history_is_broken_by_another_change_of_the_same_number(followed, position, found, broken):
    history_check = HistoryCheck()
    if followed:
        history_check.follow(followed)
    assert history_check.broken(position, found) is broken
    history_check.restart(position, found)
    assert not history_check.broken(position, found)
