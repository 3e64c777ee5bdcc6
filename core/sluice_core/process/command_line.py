"""The command line that all daemons have: configuration files, a sample of them, the version.

``--config-file`` may be given several times, ``--config-dir`` names a folder whose ``*.conf`` are read in the order of
their names.  Later arguments of the command line win, as with oslo.config.  ``--config`` is the older word for
``--config-file``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sluice_core.errors import SluiceError
from sluice_core.process.distributions import installed_version, refuse_two_distributions


class VersionAction(argparse.Action):
    """Prints program and version, and exits; the version is determined only then."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Called by argparse."""
        print(f"{parser.prog} {installed_version()}")
        parser.exit()


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add ``--version``."""
    parser.add_argument("--version", action=VersionAction)


def add_config_files(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the options that name configuration files; all of them end up in ``config``, a list of paths or None.

    :param text: the help of ``--config-file``
    """
    parser.add_argument(
        "--config-file",
        "--config",
        dest="config",
        metavar="FILE",
        type=lambda given: [Path(given).expanduser()],
        action="extend",
        help=f"{text}; of several the later one wins",
    )
    parser.add_argument(
        "--config-dir",
        dest="config",
        metavar="DIR",
        type=_files_of_folder,
        action="extend",
        help="folder with further ones, `*.conf`, read in the order of their names",
    )


def _files_of_folder(given: str) -> list[Path]:
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"`{given}` is no folder")
    return sorted(path for path in folder.glob("*.conf") if not path.name.startswith("."))


def run_daemon(
    argv: Sequence[str] | None,
    run: Callable[[Sequence[Path]], None],
    sample: Callable[[], str],
    *,
    prog: str,
    description: str | None,
    config: str,
    sample_config: str = "print all options with their defaults",
    missing: str = "--config FILE is needed, see --sample-config",
    epilog: str | None = None,
) -> int:
    """Run the command line; return the exit status: 1 for unusable configuration, which is reported on standard error.

    :param run: serves with the configuration in files until it is stopped
    :param sample: a sample of such a file
    :param config: the help of ``--config-file``
    :param missing: the message when there is no configuration file
    """
    parser = argparse.ArgumentParser(prog=prog, description=description, epilog=epilog)
    add_config_files(parser, config)
    parser.add_argument("--sample-config", action="store_true", help=sample_config)
    add_version(parser)
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample().removesuffix("\n"))
        return 0
    if not given.config:
        parser.error(missing)
    try:
        refuse_two_distributions()
        run(given.config)
    except SluiceError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1
    return 0
