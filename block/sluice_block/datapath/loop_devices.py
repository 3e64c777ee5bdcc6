"""Loop devices of this machine over files of FUSE: created, found again, removed.

The kernel allocates their numbers for the whole machine, and may reuse a number after a removal.  So a device is
Sluice's only while the kernel reports a file of Sluice for it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from pathlib import Path
from typing import Final

from sluice_block.datapath import processes
from sluice_block.datapath.processes import PATIENCE
from sluice_core.errors import Conflict, PeerError

log = logging.getLogger(__name__)

_SYSTEM: Final = Path("/sys/block")
_DEVICES: Final = Path("/dev")
#: Unit of the kernel's device sizes, in bytes.
_SECTOR: Final = 512
#: Seconds for which a program that only inspects a device may have it open.
_LOOKED_AT: Final = 1.0


def make(file: Path) -> str:
    """Return the path of a new loop device over ``file``, without page cache and without scheduler.

    Numbers are reused, and a device keeps a scheduler that was set for its former file: with ``bfq`` it has one request
    at a time.

    :raises PeerError: when the kernel refuses
    """
    device = processes.run(
        ["losetup", "--direct-io=on", "--show", "--find", str(file)], f"no loop device over `{file}`"
    ).strip()
    try:
        (_SYSTEM / Path(device).name / "queue" / "scheduler").write_text("none", encoding="ascii")
    except OSError as error:
        log.warning("`%s` keeps its scheduler: %s", device, error)
    return device


def size(device: str) -> int:
    """Return the size of a device in bytes.

    :raises PeerError: when there is no such device
    """
    try:
        sectors = (_SYSTEM / Path(device).name / "size").read_text(encoding="ascii")
    except OSError as error:
        raise PeerError(f"the size of `{device}` is not known: {error}") from error
    return int(sectors) * _SECTOR


def by_file() -> dict[str, str]:
    """Return file → the path of the loop device over it."""
    devices = {}
    for backing in _SYSTEM.glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it was removed meanwhile
            devices[backing.read_text(encoding="utf-8").rstrip("\n")] = str(_DEVICES / backing.parts[-3])
    return devices


def find(file: Path) -> str:
    """Return the path of the loop device over ``file``; empty when there is none."""
    return by_file().get(str(file), "")


def remove(device: str) -> None:
    """Remove the device.

    :raises PeerError: when the kernel refuses
    """
    processes.run(["losetup", "--detach", device], f"loop device `{device}` stays")
    if not processes.wait_until(lambda: not _backing_file(device), PATIENCE):
        raise PeerError(f"loop device `{device}` is still in use: {', '.join(users(device)) or 'by whom is not known'}")


def check_unused(device: str) -> None:
    """Refuse a device in use; wait at most a second for programs that only inspect devices (udev, losetup).

    :raises Conflict: naming the user of the device: a mount, another device, or a process that has it open
    """
    held: list[str] = []

    def is_unused() -> bool:
        held[:] = _holders(device)
        return not held

    if not processes.wait_until(is_unused, _LOOKED_AT):
        raise Conflict(f"`{device}` is in use: {', '.join(held)}")


def _holders(device: str) -> list[str]:
    held = users(device)
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return held or ["by the kernel"]
        raise PeerError(f"`{device}` cannot be opened: {error}") from error
    return held


def users(device: str) -> list[str]:
    """Return the users of the device: mount points, swap, devices above it, processes that have it open."""
    number = os.stat(device).st_rdev
    holders = [f"mounted on `{place}`" for place in _mounts(number)]
    holders += [f"swap on `{line.split()[0]}`" for line in _swaps() if _is_device(line.split()[0], number)]
    holders += [f"used by `/dev/{one.name}`" for one in (_SYSTEM / Path(device).name / "holders").glob("*")]
    return holders + [f"opened by process {pid} ({name})" for pid, name in _openers(number)]


def _backing_file(device: str) -> str:
    try:
        return (_SYSTEM / Path(device).name / "loop" / "backing_file").read_text(encoding="utf-8").rstrip("\n")
    except OSError:
        return ""


def _mounts(number: int) -> list[str]:
    """Mount points of the device in this mount namespace (proc(5): field 3 is major:minor, field 5 the place)."""
    wanted = f"{os.major(number)}:{os.minor(number)}"
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    rows = [line.split(" ") for line in lines]
    return [row[4].encode("latin-1", "replace").decode("unicode_escape") for row in rows if row[2] == wanted]


def _swaps() -> list[str]:
    return Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]


def _is_device(path: str, number: int) -> bool:
    try:
        return os.stat(path).st_rdev == number
    except OSError:
        return False


def _openers(number: int) -> list[tuple[int, str]]:
    openers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(_is_device(str(one), number) for one in (folder / "fd").iterdir()):
                openers.append((int(folder.name), (folder / "comm").read_text(encoding="utf-8").strip()))
        except OSError:  # it ended meanwhile
            continue
    return openers
