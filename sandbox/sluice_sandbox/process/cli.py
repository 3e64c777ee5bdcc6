"""``sluice-sandbox serve``: run the node's supervisor of jailed workers in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import pwd
from pathlib import Path
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.logs import start_logging
from sluice_sandbox.jail.root import PACKAGES
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.jail_pool import Settings
from sluice_sandbox.process.supervisor import serve

_HELP: Final = {
    "memory": "bytes of memory per worker",
    "patience": "seconds that a filter may compute without a result",
    "cpu": "processor seconds that each stream may take",
    "cpu_per_mb": "processor seconds that a stream may take besides for each megabyte",
    "workers": "workers per tenant at most",
    "tenants": "tenants with workers at once",
    "idle": "seconds without work after which a tenant's workers end",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the supervisor."""
    parser.add_argument("--folder", type=Path, default=Path("/run/sluice/sandbox"), help="sockets")
    parser.add_argument("--cache", type=Path, default=Path("/var/cache/sluice/sandbox"), help="root of the jail")
    parser.add_argument("--owner", help="user who may connect (default: the one who starts it)")
    parser.add_argument("--first-uid", type=int, default=400000, help="started as root: tenants run as this and next")
    parser.add_argument(
        "--packages", default=",".join(PACKAGES), help="what filters may import besides the standard library"
    )
    defaults = Limits()
    for name, text in _HELP.items():
        value = getattr(defaults, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=f"{text} ({value})")


def settings(options: argparse.Namespace) -> Settings:
    """What the parsed ``options`` say.

    :raises SluiceError: for a user or a package that there is not
    """
    packages = tuple(name for name in options.packages.split(",") if name)
    unknown = [name for name in packages if name not in PACKAGES]
    if unknown:
        raise SluiceError(f"package `{unknown[0]}`, expected some of {', '.join(PACKAGES)}")
    try:
        owner = pwd.getpwnam(options.owner).pw_uid if options.owner else None
    except KeyError as error:
        raise SluiceError(f"no user `{options.owner}` on this machine") from error
    limits = Limits(**{name: getattr(options, name) for name in _HELP})
    return Settings(options.folder, options.cache, limits, packages, owner, options.first_uid)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop.

    :raises SluiceError: for settings that cannot be, or when this machine cannot hold a jail
    """
    start_logging("info", "%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve(settings(options), lambda: print("ready", flush=True)))
    return 0
