"""``sluice-sandbox``: the image and the engine of the isolated filters on this machine.

    sluice-sandbox engine up          start a Docker engine of our own, in the state folder
    sluice-sandbox image build        make the image and import it; instant when it is there
    sluice-sandbox check              start a container, send bytes through, say what it took
    sluice-sandbox engine down        stop the engine with all its containers
    sluice-sandbox serve              supervise the jailed workers of the environment `process`

``--engine unix:///var/run/docker.sock`` uses the machine's engine instead of our own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sluice_core.errors import SluiceError
from sluice_sandbox.docker import image
from sluice_sandbox.docker.engine import DockerEngine
from sluice_sandbox.docker.locations import cache_folder, state_folder
from sluice_sandbox.process import cli
from sluice_sandbox.storlets import java


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except SluiceError as error:
        print(f"sluice-sandbox: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sluice-sandbox", description="image and engine of isolated filters")
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
    serve = rooms.add_parser("serve", help="supervise jailed workers, in the foreground")
    cli.add_arguments(serve)
    serve.set_defaults(run=cli.run)
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
