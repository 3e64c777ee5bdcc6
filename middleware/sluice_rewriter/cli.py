"""``sluice-rewriter --config FILE``: the daemon that rewrites stored objects."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence

from sluice_core.errors import SluiceError
from sluice_middleware.swift import internal_api
from sluice_rewriter.settings import sample_file


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 when it left in order."""
    parser = argparse.ArgumentParser(
        prog="sluice-rewriter", description="brings stored objects to what policies say, see docs/rewrites.md"
    )
    parser.add_argument("--config", metavar="FILE", help="an ini file: [rewriter], and a proxy application")
    parser.add_argument("--sample-config", action="store_true", help="print all options with their defaults")
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample_file(), end="")
        return 0
    if given.config is None:
        parser.error("--config FILE is needed, see --sample-config")
    internal_api.eventlet_monkey_patch()
    from sluice_rewriter.assembly import make_rewriter

    try:
        rewriter = make_rewriter(given.config)
    except SluiceError as error:
        print(f"sluice-rewriter: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, rewriter.stop)
    logging.getLogger(__name__).info("rewriter starts")
    rewriter.run()
    return 0
