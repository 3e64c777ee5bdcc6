"""``sluice-rewriter --config FILE``: the daemon that rewrites stored objects."""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence

from sluice_core.options import run_daemon
from sluice_middleware.swift import internal_api
from sluice_rewriter.settings import sample_file


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 when it left in order."""
    return run_daemon(
        argv,
        _run,
        sample_file,
        prog="sluice-rewriter",
        description="brings stored objects to what policies say, see docs/admin/rewrites.md",
        config="an ini file: [rewriter], and a proxy application",
    )


def _run(config: str) -> None:
    internal_api.eventlet_monkey_patch()
    from sluice_rewriter.daemon import make_rewriter

    rewriter = make_rewriter(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, rewriter.stop)
    logging.getLogger(__name__).info("rewriter starts")
    rewriter.run()
