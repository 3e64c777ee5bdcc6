"""Disks for the functional suite: it writes more attributes than a file of ext4 can have.

Swift's limits (90 items, 4096 bytes of user metadata, besides its own) need a file system without the 4 KB limit of
ext4: XFS, or tmpfs since Linux 6.6.  And the suite announces uploads of 5 GiB several times at once, for which
object servers reserve space: a sparse XFS image has space, memory does not, so on tmpfs the reservation is off.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_aio.errors import LaunchError

XFS: Final = "xfs"
MEMORY: Final = "memory"
_MEMORY: Final = Path("/dev") / "shm"
_IMAGE_SIZE: Final = 64 << 30
#: More than ext4 stores, as much as Swift may write.
_BIG: Final = 32 << 10


@dataclass(frozen=True, slots=True)
class Disks:
    """A folder for devices, and whether space may be reserved in it."""

    folder: Path
    fallocate: bool


def takes_big_attributes(folder: Path) -> bool:
    """Whether files in ``folder`` can have the attributes that Swift allows."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            os.setxattr(file.fileno(), "user.sluice.probe", bytes(_BIG))
        except OSError:
            return False
        return True


@contextlib.contextmanager
def disks(kind: str | None, work: Path) -> Iterator[Disks]:
    """Devices of ``kind`` while the suite runs; by default an XFS image where it can be mounted, else memory.

    :raises LaunchError: when this machine has no suitable ones
    """
    if kind is None:
        kind = XFS if os.geteuid() == 0 and shutil.which("mkfs.xfs") else MEMORY
    if kind == XFS:
        with _image(work) as folder:
            yield Disks(folder, fallocate=True)
        return
    if kind != MEMORY:
        raise LaunchError(f"no disks `{kind}`, expected {XFS} or {MEMORY}")
    with tempfile.TemporaryDirectory(prefix="sluice-disks-", dir=_MEMORY) as name:
        if not takes_big_attributes(Path(name)):
            raise LaunchError(f"`{_MEMORY}` takes no big attributes before Linux 6.6, use {XFS} as root")
        yield Disks(Path(name), fallocate=False)


@contextlib.contextmanager
def _image(work: Path) -> Iterator[Path]:
    image, folder = work / "disks.xfs", work / "disks"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(_IMAGE_SIZE)
    _run("mkfs.xfs", "-q", str(image))
    _run("mount", "-o", "loop,noatime", str(image), str(folder))
    try:
        yield folder
    finally:
        _run("umount", str(folder))
        image.unlink()


def _run(*command: str) -> None:
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LaunchError(f"cannot start `{command[0]}`: {error.strerror}") from error
    if ended.returncode != 0:
        raise LaunchError(f"{command[0]} failed: {ended.stderr.strip()}")
