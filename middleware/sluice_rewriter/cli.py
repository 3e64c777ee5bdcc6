"""``sluice-rewriter --config-file FILE``: the daemon that rewrites stored objects."""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence
from pathlib import Path

from sluice_core.connections.service_manager import ServiceManager
from sluice_core.process.command_line import run_daemon
from sluice_middleware.swift import internal_api
from sluice_rewriter.settings import sample_file


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return 0 when it ended in order."""
    return run_daemon(
        argv,
        _run,
        sample_file,
        prog="sluice-rewriter",
        description="rewrites stored objects as policies say, see docs/admin/rewrites.md",
        config="an ini file: [rewriter], and a proxy application",
    )


def _run(config: Sequence[Path]) -> None:
    internal_api.eventlet_monkey_patch()
    from sluice_middleware.swift import green
    from sluice_rewriter.daemon import make_rewriter

    rewriter = make_rewriter(*config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, rewriter.stop)
    logging.getLogger(__name__).info("rewriter starts")
    manager = ServiceManager.from_environment()
    green.start_green(manager.keep_alive, green.pause)
    rewriter.run(manager.ready)
    manager.stopping()
