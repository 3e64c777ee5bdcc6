"""``sluice-aio up|down|status|demo``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_aio import play
from sluice_aio.base.layout import DEFAULT_FOLDER, DEFAULT_PORT_BASE, Layout
from sluice_aio.base.ports import probe
from sluice_aio.base.setup import KEYSTONE, TEMPAUTH, Setup
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.records import Record, Records, stop_recorded
from sluice_core.errors import SluiceError
from sluice_core.process.command_line import add_version

#: Exit status of ``status``: all run, some run, none runs.
RUNNING: Final = 0
PARTLY: Final = 1
STOPPED: Final = 3
#: Exit status of a shell for a command that Ctrl-C ended.
INTERRUPTED: Final = 130


class Interrupted(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled like Ctrl-C: stop what was started."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of ``status``."""

    service: str
    pid: int
    port: int | None
    state: str


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="sluice-aio",
        description="A whole Sluice cluster on 127.0.0.1.",
        epilog=f"SLUICE_DIR (default {DEFAULT_FOLDER}) is its folder, SLUICE_PORT_BASE (default "
        f"{DEFAULT_PORT_BASE}) its first port; options win over both.",
    )
    add_version(top)
    top.add_argument("--folder", help="folder of the cluster")
    top.add_argument("--ports", help="first port, or `free` for any that are free", metavar="BASE|free")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    up = commands.add_parser("up", help="start a cluster and leave it running")
    up.add_argument("--plain", action="store_true", help="also a proxy without Sluice over the same storage")
    up.add_argument(
        "--with",
        dest="profiles",
        type=read_profiles,
        default=frozenset(),
        metavar="PROFILE[,PROFILE]",
        help="with Keystone, and also: block, Cinder and volumes; horizon, the dashboard",
    )
    commands.add_parser("down", help="stop it")
    commands.add_parser("status", help="what runs: exit status 0 all, 1 some, 3 none")
    demo = commands.add_parser("demo", help="show a live workload switch a filter on, and off again")
    block = commands.add_parser("demo-block", help="show a volume found, attached, slowed by a sentence, and encrypted")
    for one in (demo, block):
        one.add_argument("--keep", action="store_true", help="leave the cluster running afterwards")
    return top


def read_profiles(text: str) -> frozenset[str]:
    """The profiles that ``--with`` names.

    :raises ArgumentTypeError: for an unknown profile
    """
    names = frozenset(text.split(","))
    for name in sorted(names - components.PROFILES.keys()):
        known = ", ".join(components.PROFILES)
        raise argparse.ArgumentTypeError(f"no profile `{name}`, expected some of {known}")
    return names


def layout_of(arguments: argparse.Namespace) -> Layout:
    """The layout from options and environment."""
    environment = dict(os.environ)
    if arguments.folder:
        environment["SLUICE_DIR"] = arguments.folder
    if arguments.ports == "free":
        return Layout.free(Path.cwd() / environment.get("SLUICE_DIR", DEFAULT_FOLDER))
    if arguments.ports:
        environment["SLUICE_PORT_BASE"] = arguments.ports
    return Layout.from_environment(environment, Path.cwd())


def rows(layout: Layout) -> list[Row]:
    """The records in the cluster's folder, compared with the running processes."""
    records = Records(layout.run).load().values()
    return [Row(one.service, one.processes[0].pid, one.port, _state(one)) for one in records]


def _state(record: Record) -> str:
    if not record.alive():
        return "ended"
    if (
        record.service in components.HTTP
        and record.port
        and not probe(record.port, b"GET /healthcheck HTTP/1.0\r\n\r\n")
    ):
        return "silent"
    return "running"


def show_status(layout: Layout) -> int:
    """Print the table of services; the exit status says whether all, some or none runs."""
    table = rows(layout) + rows(layout.for_demo())
    if not table:
        print(f"no cluster runs in {layout.folder}")
        return STOPPED
    print(f"{'service':<10} {'pid':>8} {'port':>6}  state")
    for row in table:
        print(f"{row.service:<10} {row.pid:>8} {row.port or '-':>6}  {row.state}")
    running = [row for row in table if row.state == "running"]
    if len(running) == len(table):
        return RUNNING
    return PARTLY if running else STOPPED


def up(layout: Layout, plain: bool, profiles: frozenset[str] = frozenset()) -> int:
    """Start a cluster and print how to use it."""
    Cluster(layout.for_demo()).refuse_when_running()  # a kept demo uses the same ports
    names = components.DEFAULT | {"rewriter", "motifs"}
    names = names.union(*(components.PROFILES[one] for one in profiles))
    setup = Setup(
        auth=KEYSTONE if profiles else TEMPAUTH,
        sandbox="sandbox" in names,
        agent_options={"agent": {"collectd": "true"}} if "collectd" in names else {},
    )
    cluster = Cluster(layout, names, plain=plain, setup=setup)
    cluster.start(lambda line: print(line, flush=True))
    if profiles:
        play.show_keystone(cluster, profiles)
    else:
        play.show_tempauth(cluster, plain)
    print(f"logs       {layout.logs}, stop it with `make down`")
    return 0


def down(layout: Layout) -> int:
    """Stop the running services; no running service is not an error."""
    stopped = [name for one in (layout, layout.for_demo()) if one.run.exists() for name in stop_recorded(one)]
    print(f"stopped {', '.join(stopped)}" if stopped else f"no cluster runs in {layout.folder}")
    return 0


def demo(layout: Layout, keep: bool) -> int:
    """Start a cluster, run the demo, stop it again."""
    from sluice_aio.demo.demo import run_demo  # only this needs swiftclient's and Swift's modules

    return run_demo(layout, keep)


def demo_block(layout: Layout, keep: bool) -> int:
    """Start a cluster with Cinder, run the demo of volumes, stop it again."""
    from sluice_aio.demo.block import run_block_demo  # only this needs the client

    return run_block_demo(layout, keep)


def interrupt(number: int, frame: object) -> None:
    """A signal handler: end like Ctrl-C."""
    raise Interrupted(signal.Signals(number).name)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    arguments = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        layout = layout_of(arguments)
        if arguments.command == "up":
            return up(layout, arguments.plain, arguments.profiles)
        if arguments.command == "down":
            return down(layout)
        if arguments.command == "status":
            return show_status(layout)
        if arguments.command == "demo-block":
            return demo_block(layout, arguments.keep)
        return demo(layout, arguments.keep)
    except SluiceError as error:
        print(f"sluice-aio: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted, everything was stopped", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
