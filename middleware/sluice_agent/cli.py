"""``sluice-agent --config-file FILE``, ``sluice-agent calibrate`` and ``sluice-agent upgrade-swift-conf``"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from sluice_agent import calibration, swift_conf
from sluice_agent.agent import Agent
from sluice_agent.settings import OPTIONS, SECTION, Settings
from sluice_core.connections.service_manager import ServiceManager
from sluice_core.errors import SluiceError
from sluice_core.options import read_files, sample_section
from sluice_core.process.command_line import run_daemon
from sluice_core.process.logs import start_logging

log = logging.getLogger("sluice_agent")

_COMMANDS = {"calibrate": calibration.main, "upgrade-swift-conf": swift_conf.main}


def main(argv: Sequence[str] | None = None) -> int:
    """Run an agent until SIGTERM or SIGINT, or one of its commands; 0 when that ended in order."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in _COMMANDS:
        return _COMMANDS[argv[0]](argv[1:])
    return run_daemon(
        argv,
        _run,
        lambda: sample_section(SECTION, OPTIONS),
        prog="sluice-agent",
        description="the process beside Swift on every node",
        config="the configuration, an ini file with a section [agent]",
        epilog="`sluice-agent calibrate --help`: measure what this node can move; "
        "`sluice-agent upgrade-swift-conf --help`: Swift's files after the distribution was renamed",
    )


def _run(config: Sequence[Path]) -> None:
    values = read_files(OPTIONS, config, SECTION)
    settings = Settings.from_options(values)
    _start_logging(values["log_level"], values["log_format"])
    try:
        asyncio.run(_serve(settings))
    except ExceptionGroup as group:
        ours, others = group.split(SluiceError)
        if others is not None or ours is None:
            raise
        raise _first(ours) from group


def _first(group: BaseException) -> BaseException:
    return _first(group.exceptions[0]) if isinstance(group, BaseExceptionGroup) else group


def _start_logging(level: str, log_format: str) -> None:
    start_logging(level, log_format)
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # the bus logs each failure once


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    work = asyncio.current_task()
    assert work is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    log.info("agent of node `%s` starts", settings.node)
    manager = ServiceManager.from_environment()
    watched = loop.create_task(manager.keep_loop_alive())
    try:
        await Agent(settings).run(manager.ready)
    except asyncio.CancelledError:  # only the signals cancel it
        log.info("agent of node `%s` has stopped", settings.node)
    finally:
        watched.cancel()
