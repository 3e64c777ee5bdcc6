"""``sluice-motifs --config-file FILE``: the daemon that makes the bytes of contracted objects.

Modules with threads are imported after eventlet has patched them: ``concurrent.futures`` creates a lock when it is
imported, and holds it while it starts a thread.  With a lock of the operating system the next green thread that waits
for it would stop the whole process.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence
from pathlib import Path

from sluice_core.connections.service_manager import ServiceManager
from sluice_core.process.command_line import run_daemon
from sluice_middleware.swift import internal_api


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return 0 when it ended in order."""
    internal_api.eventlet_monkey_patch()
    from sluice_motifs_swift.settings import sample_file

    return run_daemon(
        argv,
        _run,
        sample_file,
        prog="sluice-motifs",
        description="makes the bytes of contracted objects, see docs/admin/motifs.md",
        config="an ini file: [motifs], and a proxy application",
    )


def _run(config: Sequence[Path]) -> None:
    from sluice_middleware.swift import green
    from sluice_motifs_swift.assembly import make_daemon

    daemon = make_daemon(*config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, daemon.stop)
    logging.getLogger(__name__).info("motif daemon starts")
    manager = ServiceManager.from_environment()
    green.start_green(manager.keep_alive, green.pause)
    daemon.run(manager.ready)
    manager.stopping()
