"""``sluice-agent calibrate``: what this node can move, measured, as lines for the agent's configuration.

Storage: all disks are written and read at once, as object servers do it, each in a file of its own that has no name
(so nothing stays, whatever happens), past the page cache where the file system can do that.  The sum is what the
node can do; the network bounds it, if ``--link`` says how fast that is.  A proxy moves what its link carries: it is
not measured, since that would need the rest of the cluster.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Final

from sluice_agent.capacity import read_rate, write_rate
from sluice_agent.disk_speed import DiskSpeed, measure
from sluice_agent.edit_file import edit_file
from sluice_agent.settings import SECTION
from sluice_core.errors import SluiceError
from sluice_core.options import OptionError

#: Where Swift looks for disks by default.
_DEVICES: Final = Path("/srv/node")
_MIB: Final = 1024 * 1024
#: Seconds, MiB or copies.
_MOST: Final = 1 << 20


def main(argv: Sequence[str]) -> int:
    """Measure, print the options, and write them if that is wanted; 0 when all went well."""
    parser = _parser()
    given = parser.parse_args(argv)
    if given.write and given.config is None:
        parser.error("--write needs --config FILE")
    for name in ("seconds", "size", "copies"):
        if not 0 < getattr(given, name) < _MOST:
            parser.error(f"--{name} is `{getattr(given, name)}`, expected above 0")
    try:
        disks = [Path(name) for name in given.device] or _mounted(_DEVICES)
        if not disks and given.link is None:
            raise OptionError(f"no disk below `{_DEVICES}`: name them with --device, or the network with --link")
        rates = {**_storage(disks, given), **_proxy(given.link, given.copies)}
        for name, rate in rates.items():
            print(f"{name} = {write_rate(rate)}")
        if given.write:
            write_options(given.config, SECTION, {name: write_rate(rate) for name, rate in rates.items()})
            _say(f"written to {given.config}; restart the agent")
    except SluiceError as error:
        print(f"sluice-agent calibrate: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice-agent calibrate", description="measure what this node can move; quiet disks give honest figures"
    )
    parser.add_argument("--config", metavar="FILE", help="the agent's configuration, for --write")
    parser.add_argument(
        "--device", metavar="DIR", action="append", default=[], help=f"where a disk is mounted; else all in {_DEVICES}"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for reading, and again for writing (10)")
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="of each file, at most (1024)")
    parser.add_argument("--link", type=_link, metavar="RATE", help="what the network carries each way, as in 1.2GBps")
    parser.add_argument("--copies", type=int, default=3, help="replicas that a proxy sends of an upload (3)")
    parser.add_argument("--write", action="store_true", help="change the configuration")
    return parser


def _storage(disks: Sequence[Path], given: argparse.Namespace) -> Mapping[str, float]:
    if not disks:
        return {}
    speeds = measure(disks, given.seconds, given.size * _MIB, _say)
    for speed in speeds:
        _say(_about(speed))
    most = given.link if given.link is not None else inf
    read = min(sum(speed.read for speed in speeds), most)
    write = min(sum(speed.write for speed in speeds), most)
    return {"storage_get_bw": read, "storage_put_bw": write, "storage_replication_bw": min(read, write)}


def _proxy(link: float | None, copies: int) -> Mapping[str, float]:
    return {} if link is None else {"proxy_get_bw": link, "proxy_put_bw": link / copies}


def _about(speed: DiskSpeed) -> str:
    how = "" if speed.direct else " (through the page cache, which this file system insists on: take it with care)"
    return f"{speed.path}: reads {write_rate(speed.read)}, writes {write_rate(speed.write)}{how}"


def _mounted(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_mount())


def _link(text: str) -> float:
    try:
        return read_rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def write_options(path: str | Path, section: str, values: Mapping[str, str]) -> None:
    """Set ``values`` in ``[section]`` of the ini file at ``path``, which is replaced at once.

    People keep it: comments, order and all else stay as they are.

    :raises OptionError: when that cannot be
    """
    edit_file(path, lambda text: changed(text, section, values))


def changed(text: str, section: str, values: Mapping[str, str]) -> str:
    """``text`` with ``values`` in its ``[section]``, where the option is set or shown, else at the end of that."""
    lines = text.splitlines()
    first, last = _section(lines, section)
    for name, value in values.items():
        line = f"{name} = {value}"
        at = _line(lines, name, first, last)
        if at is None:
            while last > first and not lines[last - 1].strip():
                last -= 1
            lines.insert(last, line)
            last += 1
        else:
            lines[at] = line
    return "\n".join(lines) + "\n"


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """The lines of a section, which is made when there is none: from, to."""
    heads = [at for at, line in enumerate(lines) if re.match(r"\[[^]]+\]", line)]
    for at in heads:
        if lines[at].startswith(f"[{section}]"):
            return at + 1, min((other for other in heads if other > at), default=len(lines))
    lines.append(f"[{section}]")
    return len(lines), len(lines)


def _line(lines: list[str], name: str, first: int, last: int) -> int | None:
    """Where the option is set; else where a sample shows it, commented out."""
    for pattern in (rf"{name}\s*[=:]", rf"#\s?{name}\s*[=:]"):
        for at in range(first, last):
            if re.match(pattern, lines[at]):
                return at
    return None
