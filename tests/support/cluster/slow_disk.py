"""Disks for measurements: loop devices with XFS and the scheduler BFQ, and *slow* ones, on which real queues form.

A slow disk is nbdkit with its filters *rate* and *delay*, which nbdfuse shows as a file, on which a loop device is
set up: file system → loop device with BFQ → nbdfuse → nbdkit → image.  All of it needs root.  Loop numbers are
machine-wide: the next free one is used and released.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_aio.errors import LaunchError

#: Programs of slow disks besides util-linux: program → Debian package.
PROGRAMS: Final = {"nbdkit": "nbdkit", "nbdfuse": "libnbd-bin", "fusermount3": "fuse3", "mkfs.xfs": "xfsprogs"}
_PATIENCE: Final = 15.0
_SIZE: Final = 4 << 30


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of a slow disk: ``rate`` bytes per second each for reads and writes, ``delay`` seconds for each request."""

    rate: int = 100_000_000
    delay: float = 0.001


@dataclass(frozen=True, slots=True)
class Disk:
    """A mounted file system, and the loop device below it (``loop3``)."""

    folder: Path
    device: str

    def queue(self, name: str, value: str) -> None:
        """Set one of the queue's properties, as in ``/sys/block/loop3/queue``."""
        (Path("/sys/block") / self.device / "queue" / name).write_text(value, encoding="ascii")

    @contextlib.contextmanager
    def dirty_within(self, size: int) -> Iterator[None]:
        """Limit the bytes that wait in memory for write-back to ``size``: then writers wait for the disk.

        :raises LaunchError: when the kernel cannot bound that for one disk
        """
        device = Path("/sys/block") / self.device / "bdi"
        files = (device / "max_bytes", device / "max_ratio", device / "strict_limit")
        if not all(file.exists() for file in files):
            raise LaunchError(f"cannot bound what waits to be written to `{self.device}`, expected Linux 6.2")
        most, ratio, strict = files
        before = ratio.read_text(encoding="ascii")
        most.write_text(str(size), encoding="ascii")
        strict.write_text("1", encoding="ascii")
        try:
            yield
        finally:  # loop devices outlive their backing files
            strict.write_text("0", encoding="ascii")
            ratio.write_text(before, encoding="ascii")


def missing() -> str:
    """Why slow disks are impossible on this machine; empty when they are possible."""
    if os.geteuid() != 0:
        return "slow disks need root"
    lacking = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if lacking:
        return f"slow disks need the Debian packages {', '.join(lacking)}"
    return "" if Path("/dev/fuse").exists() else "slow disks need `/dev/fuse`"


@contextlib.contextmanager
def disk(work: Path, name: str = "disk", size: int = _SIZE, speed: Speed | None = None) -> Iterator[Disk]:
    """A file system of ``size`` bytes (sparse) on a device with BFQ; slow when ``speed`` is given.

    :raises LaunchError: when this machine cannot have one
    """
    image = work / f"{name}.img"
    with open(image, "wb") as file:
        file.truncate(size)
    folder = work / name
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.callback(image.unlink)
        _run("mkfs.xfs", "-q", str(image))
        shown = stack.enter_context(_slowed(work, name, image, speed)) if speed else image
        device = _run("losetup", "--direct-io=on", "--show", "-f", str(shown))
        stack.callback(_run, "losetup", "-d", device)
        found = Disk(folder, Path(device).name)
        stack.callback(found.queue, "scheduler", "none")  # the next user of its number gets the present settings
        found.queue("scheduler", "bfq")
        _run("mount", "-o", "noatime", device, str(folder))
        stack.callback(_run, "umount", str(folder))
        yield found


@contextlib.contextmanager
def _slowed(work: Path, name: str, image: Path, speed: Speed) -> Iterator[Path]:
    """A slow file with the bytes of ``image``."""
    wire, folder = work / f"{name}.sock", work / f"{name}.fuse"
    folder.mkdir(exist_ok=True)
    wire.unlink(missing_ok=True)  # nbdkit does not remove it
    milliseconds = f"{speed.delay * 1000:g}ms"
    filters = ("--filter=rate", "--filter=delay", "file", str(image))
    # the kernel's own credit of two seconds would let the first 200 MB pass at once
    numbers = (f"rate={speed.rate * 8}", "burstiness=0.1", f"rdelay={milliseconds}", f"wdelay={milliseconds}")
    shown = folder / "nbd"
    with (
        _started(["nbdkit", "-f", "-U", str(wire), "-t", "32", *filters, *numbers], wire),
        _started(["nbdfuse", str(shown), f"nbd+unix:///?socket={wire}"], shown, ends=True),
    ):
        try:
            yield shown
        finally:
            _run("fusermount3", "-u", str(folder))


@contextlib.contextmanager
def _started(command: list[str], sign: Path, ends: bool = False) -> Iterator[None]:
    """``command`` while it runs; it is ready when ``sign`` exists, and ends by itself when ``ends``."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _PATIENCE
        while not sign.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise LaunchError(f"`{command[0]}` did not come up, expected `{sign}`")
            time.sleep(0.02)
        yield
    finally:
        if not ends:
            process.terminate()
        process.wait(_PATIENCE)


def _run(*command: str) -> str:
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LaunchError(f"cannot start `{command[0]}`: {error.strerror}") from error
    if ended.returncode != 0:
        raise LaunchError(f"{command[0]} failed: {ended.stderr.strip()}")
    return ended.stdout.strip()
