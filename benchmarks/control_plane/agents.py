"""Some agents on one loop: ``python -m benchmarks.control_plane.agents REDIS FOLDER NUMBER COUNT``, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings


async def serve(redis_url: str, folder: Path, number: int, count: int) -> None:
    """``count`` agents, each with a snapshot folder of its own."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    agents = []
    for member in range(count):
        node = f"node{number}-{member}"
        agents.append(Agent(Settings(node=node, redis_url=redis_url, snapshot_dir=str(folder / node))))
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in [waiting, *tasks]:
        task.cancel()
    for fault in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(fault, Exception):
            raise fault


def main() -> None:
    """Run with the arguments of the command line."""
    redis_url, folder, number, count = sys.argv[1:]
    asyncio.run(serve(redis_url, Path(folder), int(number), int(count)))


if __name__ == "__main__":
    main()
