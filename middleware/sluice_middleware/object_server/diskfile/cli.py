"""``sluice-diskfile``: counts transformed objects on a node's disks, and makes them plain before Sluice is removed."""

from __future__ import annotations

import argparse
import configparser
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sluice_core.errors import SluiceError
from sluice_core.options import OptionError
from sluice_core.process.command_line import add_version
from sluice_core.process.logs import start_logging
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters
from sluice_middleware.object_server.diskfile.rewrite import (
    DAMAGED,
    GONE,
    REWRITTEN,
    TRANSFORMED,
    UNREADABLE,
    FileReport,
    data_files,
    inspect,
    rewrite,
)
from sluice_middleware.wsgi import sysmeta

_CONFIG: Final = "/etc/swift/object-server.conf"
#: Seconds between two lines of progress.
_PROGRESS: Final = 10.0
_MOST_NAMED: Final = 20
#: Command that names objects → the metadata of these objects.
_NAMED: Final = {"encoded": sysmeta.CHAIN, "contracted": sysmeta.CONTRACTED}


class WriteRateLimit:
    """Sleeps so that no more than ``rate`` bytes a second are written; 0 is no limit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._begin = time.monotonic()
        self._written = 0

    def __call__(self, size: int) -> None:
        self._written += size
        if self._rate:
            ahead = self._written / self._rate - (time.monotonic() - self._begin)
            if ahead > 0:
                time.sleep(ahead)


@dataclass
class DeviceReport:
    """The counts of one device."""

    device: Path
    states: Counter[str] = field(default_factory=Counter)
    filters: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    named: list[FileReport] = field(default_factory=list)

    def add(self, file: FileReport) -> None:
        """Count one file."""
        self.states[file.state] += 1
        if file.stored is not None:
            self.filters["+".join(file.stored.filters()) or "unknown"] += 1
        if file.reason:
            self.reasons[f"{file.state}: {file.reason}"] += 1
            if len(self.named) < _MOST_NAMED:
                self.named.append(file)

    def left(self) -> int:
        """Files that are still transformed, or may be."""
        return sum(self.states[state] for state in (TRANSFORMED, UNREADABLE, DAMAGED))

    def line(self) -> str:
        """One line of all numbers."""
        total = sum(count for state, count in self.states.items() if state != GONE)
        words = [f"{self.states[state]} {state}" for state in (TRANSFORMED, REWRITTEN, UNREADABLE, DAMAGED, GONE)]
        return f"{self.device}: {total} files, {', '.join(words)}"

    def lines(self) -> list[str]:
        """All counts and reasons as lines for the operator."""
        filters = [f"    {count} by {names}" for names, count in sorted(self.filters.items())]
        reasons = [f"    {count} {reason}" for reason, count in sorted(self.reasons.items())]
        named = [f"    {one.state} {one.path}" for one in self.named]
        return [self.line(), *filters, *reasons, *named]


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 when no transformed file is left (``unwind``), or on success of other commands, else 1."""
    given = _arguments().parse_args(argv)
    start_logging("warning", form="%(levelname)s: %(message)s")
    try:
        devices, tools = _configuration(given.config)
        if given.command == "show":
            return _show([Path(one) for one in given.file], tools)
        folders = [_device(one, devices) for one in given.device]
        header = _NAMED.get(given.command)
        return _walk(given, folders, tools) if header is None else _name(folders, tools, header)
    except (SluiceError, OSError) as error:
        print(f"sluice-diskfile: {error}", file=sys.stderr)
        return 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice-diskfile", description="count transformed files on disks, and make them plain"
    )
    add_version(parser)
    parser.add_argument(
        "--config", metavar="FILE", help=f"the object server's configuration, for keys and devices ({_CONFIG})"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    scan = commands.add_parser("scan", help="count transformed files by filters, and files that cannot be read here")
    unwind = commands.add_parser("unwind", help="make transformed files plain; safe beside a running server")
    unwind.add_argument("--dry-run", action="store_true", help="only print the counts, without changes")
    unwind.add_argument(
        "--mb-per-second", type=float, default=0.0, metavar="N", help="write no more than N MB a second"
    )
    encoded = commands.add_parser(
        "encoded", help="name objects that proxies encoded, a path in Swift per line; a copy onto itself is plain"
    )
    contracted = commands.add_parser(
        "contracted",
        help="name contracted objects, a path in Swift per line: reading one expands it",
    )
    for command in (scan, unwind, encoded, contracted):
        command.add_argument("device", nargs="+", help="path of a device, or its name below `devices`")
    show = commands.add_parser("show", help="show the metadata of a file as JSON")
    show.add_argument("file", nargs="+", help="a .data file")
    return parser


def _configuration(path: str | None) -> tuple[Path, DiskFilters]:
    """The folder of devices, and the filters with their keys.

    :raises OptionError: when the file cannot be used
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        with open(path or _CONFIG, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        if path is not None or not isinstance(error, FileNotFoundError):
            raise OptionError(f"cannot read `{path or _CONFIG}`: {error}") from error
    conf = dict(parser.defaults())
    return Path(conf.get("devices", "/srv/node")), DiskFilters(conf, logging.getLogger("sluice_diskfile"))


def _device(text: str, devices: Path) -> Path:
    path = Path(text) if "/" in text else devices / text
    if not path.is_dir():
        raise OptionError(f"device `{path}` is no folder")
    return path


def _walk(given: argparse.Namespace, devices: Sequence[Path], tools: DiskFilters) -> int:
    change = given.command == "unwind" and not given.dry_run
    pace = WriteRateLimit(given.mb_per_second * 1e6 if given.command == "unwind" else 0.0)
    left = 0
    for device in devices:
        tally = DeviceReport(device)
        told = time.monotonic()
        for path in data_files(device):
            tally.add(rewrite(path, tools, pace) if change else inspect(path, tools))
            if time.monotonic() - told >= _PROGRESS:
                told = time.monotonic()
                print(tally.line(), file=sys.stderr)
        print("\n".join(tally.lines()))
        left += tally.left()
    return 1 if given.command == "unwind" and left else 0


def _name(devices: Sequence[Path], tools: DiskFilters, header: str) -> int:
    """Print each name of an object with ``header`` once, quoted as in a URL, since a name may contain any character."""
    said = set()
    for path in (path for device in devices for path in data_files(device)):
        known = inspect(path, tools).metadata or {}
        name = str(known.get("name", ""))
        if header in known and name not in said:
            said.add(name)
            print(quote(name))
    return 0


def _show(paths: Sequence[Path], tools: DiskFilters) -> int:
    for path in paths:
        report = inspect(path, tools)
        if report.state == GONE:
            raise OptionError(f"there is no file `{path}`")
        stored = None if report.stored is None else json.loads(report.stored.encode())
        known = {"path": str(path), "state": report.state, "reason": report.reason, "stored": stored}
        print(json.dumps({**known, "metadata": dict(report.metadata or {})}, indent=2, sort_keys=True))
    return 0
