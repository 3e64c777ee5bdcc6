"""Tasks that lose a cancellation still end."""

import asyncio

from sluice_core.store.store import cancel_tasks


async def loses(cancellations):
    """Run without end; lose this number of cancellations."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if not cancellations:
                raise
            cancellations.pop()


def test_tasks_are_cancelled_again_until_all_have_ended():
    async def story():
        lost = [[], ["once"], ["once", "twice"]]
        tasks = [asyncio.create_task(loses(cancellations)) for cancellations in lost]
        await asyncio.sleep(0)
        await cancel_tasks(tasks, again=0.01)
        assert all(task.cancelled() for task in tasks)
        assert lost == [[], [], []]

    asyncio.run(story())


def test_tasks_that_have_ended_are_left_alone():
    async def story():
        task = asyncio.create_task(asyncio.sleep(0, "done"))
        await task
        await cancel_tasks([task], again=0.01)
        assert task.result() == "done"

    asyncio.run(story())
