"""The command line of daemons: ``--config FILE``, or ``--sample-config``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from sluice_core.errors import SluiceError


def run_daemon(
    argv: Sequence[str] | None,
    run: Callable[[str], None],
    sample: Callable[[], str],
    *,
    prog: str,
    description: str | None,
    config: str,
    sample_config: str = "print all options with their defaults",
    missing: str = "--config FILE is needed, see --sample-config",
    epilog: str | None = None,
) -> int:
    """Do what the command line says; the exit status: 1 for what cannot be used, which is said on standard error.

    :param run: serves with the configuration in a file until it is told to stop
    :param sample: a sample of such a file
    :param config: the help of ``--config``
    :param missing: what is said when there is none
    """
    parser = argparse.ArgumentParser(prog=prog, description=description, epilog=epilog)
    parser.add_argument("--config", metavar="FILE", help=config)
    parser.add_argument("--sample-config", action="store_true", help=sample_config)
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample().removesuffix("\n"))
        return 0
    if given.config is None:
        parser.error(missing)
    try:
        run(given.config)
    except SluiceError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1
    return 0
