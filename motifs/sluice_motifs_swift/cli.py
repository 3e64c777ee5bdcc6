"""``sluice-motifs --config FILE``: the daemon that makes the bytes of contracted objects.

All that has threads is imported after eventlet has patched them: ``concurrent.futures`` makes a lock when it is
imported, and holds it while it starts a thread.  With a lock of the operating system the next green thread that wants
it stops the whole process.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence

from sluice_core.errors import SluiceError
from sluice_middleware.swift import internal_api


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 when it left in order."""
    internal_api.eventlet_monkey_patch()
    from sluice_motifs_swift.assembly import make_daemon
    from sluice_motifs_swift.settings import sample_file

    parser = argparse.ArgumentParser(
        prog="sluice-motifs", description="makes the bytes of contracted objects, see docs/motifs.md"
    )
    parser.add_argument("--config", metavar="FILE", help="an ini file: [motifs], and a proxy application")
    parser.add_argument("--sample-config", action="store_true", help="print all options with their defaults")
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample_file(), end="")
        return 0
    if given.config is None:
        parser.error("--config FILE is needed, see --sample-config")
    try:
        daemon = make_daemon(given.config)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, daemon.stop)
        logging.getLogger(__name__).info("motif daemon starts")
        daemon.run()
    except SluiceError as error:
        print(f"sluice-motifs: {error}", file=sys.stderr)
        return 1
    return 0
