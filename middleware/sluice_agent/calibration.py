"""``sluice-agent calibrate``: the measured bandwidth of this node, as lines for the agent's configuration.

Storage: all disks are written and read at the same time, as object servers do it, each in an unnamed file (so no file
remains after a crash), with O_DIRECT where the file system supports it.  The node's bandwidth is the sum over its
disks, bounded by the network's rate if ``--link`` gives it.  The bandwidth of a proxy is that of its link: it is not
measured, since that would need the rest of the cluster.
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
    """Measure, print the options, and write them if ``--write`` is given; return 0 on success."""
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
        prog="sluice-agent calibrate",
        description="measure this node's bandwidth; other load on the disks makes the figures too low",
    )
    parser.add_argument("--config", metavar="FILE", help="the agent's configuration, for --write")
    parser.add_argument(
        "--device", metavar="DIR", action="append", default=[], help=f"where a disk is mounted; else all in {_DEVICES}"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for reading, and again for writing (10)")
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="of each file, at most (1024)")
    parser.add_argument(
        "--link", type=_link, metavar="RATE", help="rate of the network in each direction, as in 1.2GBps"
    )
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
    how = "" if speed.direct else " (through the page cache, since the file system has no O_DIRECT: maybe too high)"
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
    """Set ``values`` in ``[section]`` of the ini file at ``path``, which is replaced atomically.

    Comments, order and all other options stay as the operator wrote them.

    :raises OptionError: when the file cannot be read or written
    """
    edit_file(path, lambda text: changed(text, section, values))


def changed(text: str, section: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with ``values`` in ``[section]``: in place of a set or sample line, else at the section's end."""
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
    """Return the first line and the end of a section, which is added if it is missing."""
    heads = [at for at, line in enumerate(lines) if re.match(r"\[[^]]+\]", line)]
    for at in heads:
        if lines[at].startswith(f"[{section}]"):
            return at + 1, min((other for other in heads if other > at), default=len(lines))
    lines.append(f"[{section}]")
    return len(lines), len(lines)


def _line(lines: list[str], name: str, first: int, last: int) -> int | None:
    """Return the line that sets the option, else the sample line that shows it commented out, else None."""
    for pattern in (rf"{name}\s*[=:]", rf"#\s?{name}\s*[=:]"):
        for at in range(first, last):
            if re.match(pattern, lines[at]):
                return at
    return None
