"""``sluice-api``: the controller's REST API."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from sluice_controller.config import CONFIG_VARIABLE, OPTIONS, SECTION, Config, split_source
from sluice_core.errors import SluiceError
from sluice_core.options import sample_section
from sluice_core.process.command_line import add_config_files, add_version
from sluice_core.process.distributions import refuse_two_distributions


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser_of_options = argparse.ArgumentParser(
        prog="sluice-api", description="Serve the REST API of the Sluice controller."
    )
    add_config_files(parser_of_options, f"ini file with a section [{SECTION}]")
    what = parser_of_options.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="check the configuration and exit")
    what.add_argument("--sample-config", action="store_true", help="print such a section with all options and exit")
    what.add_argument("--sample-policy", action="store_true", help="print all rules with their defaults and exit")
    add_version(parser_of_options)
    return parser_of_options


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM; return 1 if the configuration is not valid."""
    command_line = parser()
    given = command_line.parse_args(argv)
    if given.sample_config:
        print(sample_section(SECTION, OPTIONS))
        return 0
    if given.sample_policy:
        from sluice_controller.app.policy_sample import sample_policy

        print(sample_policy())
        return 0
    if not given.config:
        command_line.error("--config FILE is needed, see --sample-config")
    try:
        refuse_two_distributions()
        config = Config.read(*given.config)
    except SluiceError as error:
        print(f"sluice-api: {error}", file=sys.stderr)
        return 1
    if given.check:
        return 0 if usable(config) else 1
    if not can_start(config):
        return 1
    from sluice_controller.app.server import Server

    Server(config).run()
    return 0


def can_start(config: Config) -> bool:
    """Like :func:`usable`; a policy file is checked in a process of its own.

    The check needs the rules of all operations, and gunicorn's workers would inherit the modules imported for that,
    before the folder of their counters is set.
    """
    if not config.policy_file:
        return usable(config)
    files = (f"--config-file={path}" for path in split_source(config.source))
    command = [sys.executable, "-m", "sluice_controller", *files, "--check"]
    return subprocess.run(command, check=False).returncode == 0


def usable(config: Config) -> bool:
    """Whether the system checks pass; their errors are written to standard error."""
    os.environ[CONFIG_VARIABLE] = config.source
    from sluice_controller.app.checks import faults

    problems = list(faults(config))
    for fault in problems:
        hint = f" (try: {fault.hint})" if fault.hint else ""
        print(f"sluice-api: {config.source}: {fault.msg} [{fault.id}]{hint}", file=sys.stderr)
    return not problems
