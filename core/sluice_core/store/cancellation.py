"""Cancellation of tasks that use Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]], again: float) -> None:
    """Cancel all tasks and wait for them; cancel those left after ``again`` seconds once more, and so on.

    redis-py loses a cancellation that meets the end of a call: the task then goes on as if nothing had been said.
    A task that takes longer than ``again`` seconds to end must bear another cancellation while it does.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again)
