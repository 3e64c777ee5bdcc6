"""``sluice-actors``: run an actor host until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice_actors.host import Host
from sluice_actors.settings import OPTIONS, SECTION, read
from sluice_core.connections.service_manager import ServiceManager
from sluice_core.options import sample_section
from sluice_core.process.command_line import run_daemon
from sluice_core.process.logs import start_logging

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run_daemon(
        argv,
        _serve,
        lambda: sample_section(SECTION, OPTIONS),
        prog="sluice-actors",
        description=__doc__,
        config="ini file with a section [actors]",
        sample_config="print a sample of that file and exit",
        missing="--config FILE is needed",
    )


def _serve(config: Sequence[Path]) -> None:
    settings = read(*config)
    _set_up_logging(settings["log_level"], settings["log_format"])
    asyncio.run(_run(settings))


def _set_up_logging(level: str, log_format: str) -> None:
    start_logging(level, log_format)
    # pika logs each step of each connection attempt; the bus logs the connections that matter.
    logging.getLogger("pika").setLevel(logging.CRITICAL)


async def _run(settings: Mapping[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    manager = ServiceManager.from_environment()
    host = Host(settings)
    host.start()
    log.info("actor host `%s` started", host.name)
    started = loop.create_task(_finish_start(host, manager))
    watched = loop.create_task(manager.keep_loop_alive())
    stopping = loop.create_task(stopped.wait())
    failing = loop.create_task(host.failed())
    try:
        await asyncio.wait((stopping, failing), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            failing.result()
    finally:
        manager.stopping()
        started.cancel()
        watched.cancel()
        stopping.cancel()
        failing.cancel()
        await host.close()
        log.info("actor host `%s` ended", host.name)


async def _finish_start(host: Host, manager: ServiceManager) -> None:
    """Report that the host is ready; once all actors exist, exclude them from garbage collection."""
    await host.synced.wait()
    manager.ready()
    await host.system.idle()
    gc.collect()
    gc.freeze()
