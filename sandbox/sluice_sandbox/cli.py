"""``sluice-sandbox``: the image and the engine of the isolated filters on this machine.

    sluice-sandbox engine up          start a separate Docker engine, in the state folder
    sluice-sandbox image build        make the image and import it; instant when it is there
    sluice-sandbox check              start a container, send bytes through, print the durations
    sluice-sandbox engine down        stop the engine with all its containers
    sluice-sandbox serve              supervise the jailed workers of the environment `process`

``--engine unix:///var/run/docker.sock`` uses the machine's engine instead of the separate one.
"""

from __future__ import annotations

import argparse
import asyncio
import pwd
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sluice_core.connections.service_manager import ServiceManager
from sluice_core.errors import SluiceError
from sluice_core.process.command_line import add_version
from sluice_core.process.distributions import refuse_two_distributions
from sluice_core.process.logs import FORMATS, LOG_FORMAT, TEXT, start_logging
from sluice_sandbox.docker import image
from sluice_sandbox.docker.engine import DockerEngine
from sluice_sandbox.files import cache_folder, state_folder
from sluice_sandbox.jail.root import PACKAGES
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.jail_pool import Settings
from sluice_sandbox.process.supervisor import serve
from sluice_sandbox.storlets import java

_LIMITS_HELP: Final = {
    "memory": "bytes of memory per worker",
    "patience": "seconds that a filter may compute without a result",
    "cpu": "processor seconds that each stream may take",
    "cpu_per_mb": "processor seconds that a stream may take besides for each megabyte",
    "workers": "workers per tenant at most",
    "tenants": "tenants with workers at once",
    "idle": "seconds without work after which a tenant's workers end",
}


def add_supervisor_options(parser: argparse.ArgumentParser) -> None:
    """The options of the supervisor."""
    parser.add_argument("--folder", type=Path, default=Path("/run/sluice/sandbox"), help="sockets")
    parser.add_argument("--cache", type=Path, default=Path("/var/cache/sluice/sandbox"), help="root of the jail")
    parser.add_argument("--owner", help="user who may connect (default: the one who starts it)")
    parser.add_argument("--first-uid", type=int, default=400000, help="started as root: tenants run as this and next")
    parser.add_argument(
        "--packages", default=",".join(PACKAGES), help="what filters may import besides the standard library"
    )
    parser.add_argument("--log-format", choices=FORMATS, default=TEXT, help=f"{LOG_FORMAT.help} ({TEXT})")
    defaults = Limits()
    for name, text in _LIMITS_HELP.items():
        value = getattr(defaults, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=f"{text} ({value})")


def supervisor_settings(options: argparse.Namespace) -> Settings:
    """Return the settings in the parsed ``options``.

    :raises SluiceError: for an unknown user or package
    """
    packages = tuple(name for name in options.packages.split(",") if name)
    unknown = [name for name in packages if name not in PACKAGES]
    if unknown:
        raise SluiceError(f"package `{unknown[0]}`, expected some of {', '.join(PACKAGES)}")
    try:
        owner = pwd.getpwnam(options.owner).pw_uid if options.owner else None
    except KeyError as error:
        raise SluiceError(f"no user `{options.owner}` on this machine") from error
    limits = Limits(**{name: getattr(options, name) for name in _LIMITS_HELP})
    return Settings(options.folder, options.cache, limits, packages, owner, options.first_uid)


def run_supervisor(options: argparse.Namespace) -> int:
    """Serve until a signal stops it.

    :raises SluiceError: for invalid settings, or when this machine cannot run a jail
    """
    refuse_two_distributions()
    start_logging("info", options.log_format, "%(asctime)s %(levelname)s %(message)s")
    manager = ServiceManager.from_environment()

    def announce() -> None:
        print("ready", flush=True)
        manager.ready()

    asyncio.run(serve(supervisor_settings(options), announce, manager.keep_loop_alive))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except SluiceError as error:
        reason = str(error)
    except OSError as error:
        if error.filename is None:
            raise
        reason = f"`{error.filename}` cannot be used: {error.strerror}"
    else:
        return status
    print(f"sluice-sandbox: {reason}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sluice-sandbox", description="image and engine of isolated filters")
    add_version(parser)
    parser.add_argument("--state", type=Path, default=state_folder(), help="folder of our own engine (%(default)s)")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="what can be made again (%(default)s)")
    parser.add_argument("--engine", help="URL of another engine, instead of our own")
    rooms = parser.add_subparsers(required=True)
    images = rooms.add_parser("image", help="the image that containers are made of").add_subparsers(required=True)
    build = images.add_parser("build", help="make it; instant when it is there")
    build.add_argument("recipe", nargs="?", choices=sorted(image.RECIPES), default="python")
    build.add_argument("--mirror", default=image.PYTHON.mirror, help="Debian mirror (%(default)s)")
    build.set_defaults(run=_build)
    images.add_parser("list", help="those that the engine has").set_defaults(run=_list)
    engines = rooms.add_parser("engine", help="a Docker engine of our own").add_subparsers(required=True)
    for name, run in (("up", _up), ("down", _down), ("status", _status)):
        engines.add_parser(name).set_defaults(run=run)
    check = rooms.add_parser("check", help="send bytes through a container")
    check.add_argument("recipe", nargs="?", choices=sorted(image.RECIPES), default="python")
    check.set_defaults(run=_check)
    supervisor = rooms.add_parser("serve", help="supervise jailed workers, in the foreground")
    add_supervisor_options(supervisor)
    supervisor.set_defaults(run=run_supervisor)
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _own(options: argparse.Namespace) -> DockerEngine:
    return DockerEngine(options.state / "engine")


def _url(options: argparse.Namespace) -> str:
    return options.engine or _own(options).url


def _build(options: argparse.Namespace) -> int:
    recipe = image.RECIPES[options.recipe]
    print(image.build(replace(recipe, mirror=options.mirror), options.cache, _url(options), _say))
    if options.recipe == "java":
        print(java.build(options.cache, _say))
    return 0


def _list(options: argparse.Namespace) -> int:
    known = {recipe.digest(): name for name, recipe in image.RECIPES.items()}
    for one in image.images(_url(options)):
        print(f"{one['name']}  {one['size'] / 1e6:.0f} MB  {known.get(one['digest'], 'of another version')}")
    return 0


def _up(options: argparse.Namespace) -> int:
    engine = _own(options)
    engine.start()
    engine.wait_ready()
    print(engine.url)
    return 0


def _down(options: argparse.Namespace) -> int:
    _own(options).stop()
    return 0


def _status(options: argparse.Namespace) -> int:
    engine = _own(options)
    serves = engine.answers()
    process = "no process" if engine.pid is None else f"pid {engine.pid}"
    print(f"{engine.url} {'serves' if serves else 'does not serve'}, {process}")
    return 0 if serves else 1


def _check(options: argparse.Namespace) -> int:
    from sluice_sandbox.storlets.check import check  # needs Storlets

    recipe = image.RECIPES[options.recipe]
    name = image.build(recipe, options.cache, _url(options), _say)
    for line in check(_url(options), name, options.state):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
