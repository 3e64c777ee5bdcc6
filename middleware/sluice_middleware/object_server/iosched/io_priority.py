"""I/O priorities of threads, and which devices honour them.

A level is one of best effort, 0 (first) to 7, or ``messages.credit.IDLE`` (8), the class *idle*: what the others
leave.  Of the kernel's schedulers only BFQ heeds them.  A priority goes with what a thread itself asks of a disk,
reads and fsyncs; what the kernel writes back later on its own account has none.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice_core.messages.credit import IDLE

#: By which the kernel knows ``ioprio_set`` (``unistd.h``).
_CALLS: Final = {"x86_64": 251, "aarch64": 30}
_THIS_THREAD: Final = 0
_WHO_PROCESS: Final = 1
_BEST_EFFORT: Final = 2
_IDLE_CLASS: Final = 3
_CLASS_SHIFT: Final = 13

#: The only scheduler that honours priorities of reads and fsyncs.
PRIORITY_SCHEDULER: Final = "bfq"
_DEVICES: Final = Path("/sys/dev/block")

_libc: Final = ctypes.CDLL(None, use_errno=True)


def ioprio_value(level: int) -> int:
    """The kernel's ioprio value of ``level``."""
    if level >= IDLE:
        return _IDLE_CLASS << _CLASS_SHIFT
    return _BEST_EFFORT << _CLASS_SHIFT | max(level, 0)


def set_level(level: int) -> None:
    """Give the calling thread's I/O ``level``.

    :raises OSError: ENOSYS on machines whose call we do not know, or what the kernel says
    """
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(38, f"no I/O priorities on `{platform.machine()}`, expected {' or '.join(_CALLS)}")
    if _libc.syscall(number, _WHO_PROCESS, _THIS_THREAD, ioprio_value(level)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ioprio_set: {os.strerror(error)}")


def honours_priorities(folder: Path, devices: Path = _DEVICES) -> tuple[bool, str]:
    """Whether the device of the file system that ``folder`` is on heeds priorities, and why in words.

    :raises OSError: when there is no such folder
    """
    number = folder.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    place = devices / name
    if not place.exists():
        return False, "no block device"
    found = [(one.name, scheduler(one)) for one in queue_devices(place.resolve())]
    words = ", ".join(f"{disk} has the scheduler {chosen or 'none'}" for disk, chosen in found)
    return bool(found) and all(chosen == PRIORITY_SCHEDULER for _, chosen in found), words


def queue_devices(place: Path) -> Iterator[Path]:
    """The devices with a queue that ``place`` in sysfs (a disk, partition, volume or array) stands on.

    A loop device has a queue of its own, and stands for itself.
    """
    if (place / "partition").exists():
        place = place.parent
    below = sorted((place / "slaves").iterdir()) if (place / "slaves").is_dir() else []
    if not below:
        yield place
    for one in below:
        yield from queue_devices(one.resolve())


def scheduler(disk: Path) -> str:
    """The one that is chosen for ``disk`` in sysfs; empty when there is none to choose."""
    try:
        words = (disk / "queue" / "scheduler").read_text(encoding="ascii").split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")
