"""The kept assignments equal those of the store, whatever changes while they are read."""

import asyncio

from sluice_actors.volumes.kept_assignments import KeptAssignments
from sluice_core.messages.policies import Change
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore
from sluice_core.testing import assignment


def test_a_change_that_comes_while_all_are_read_is_not_lost(redis_server):
    gone, new = assignment("a.0", "AUTH_a", "noop"), assignment("b.0", "AUTH_b", "noop")

    async def play():
        store = AsyncStore(redis_server.url, "kept")
        try:
            await store.commit(Draft("me", puts=(gone,)))
            kept = KeptAssignments(store, lambda one: True)
            run = store.run

            async def run_and_change(operation):
                found = await run(operation)
                kept.apply(Change(2, "h", 1.0, puts=(new,), drops=(gone.id,)))
                return found

            store.run = run_and_change
            assert await kept.read()
            assert [one.id for one in kept.values()] == [new.id]
        finally:
            store.run = run
            await store.client.flushdb()
            await store.close()

    asyncio.run(asyncio.wait_for(play(), 20))
