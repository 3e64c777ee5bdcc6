"""Volumes of a konnector in this process, over files of this machine.  As root: loop devices and mounts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.scale import Scale

from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.records import BLOCK, VolumeAttachment
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.build import build
from sluice_core.errors import PeerError

_BLOCK: Final = 1 << 20


def make_konnector(scale: Scale) -> Konnector:
    """A konnector without volumes, with folders of its own, as one on another machine has.

    :raises PeerError: for others than root
    """
    if os.geteuid() != 0:
        raise PeerError("loop devices and mounts are root's")
    folder = Path(tempfile.mkdtemp(prefix="k", dir=scale.folder))
    return Konnector(folder / "state", folder / "run", build(scale.folder / "built"), folder / "logs")


def fill(file: Path, size: int, zeros: int = 0) -> None:
    """Write a file of random bytes behind some zeros, so that no write has room to find.

    :param size: bytes, whole MiB
    :param zeros: bytes at its beginning, whole MiB
    """
    with open("/dev/urandom", "rb") as random, file.open("wb") as target:
        for at in range(0, size, _BLOCK):
            target.write(bytes(_BLOCK) if at < zeros else random.read(_BLOCK))


@contextlib.contextmanager
def attached(konnector: Konnector, source: Path, export: str = BLOCK, **fields: Any) -> Iterator[AttachedVolume]:
    """A volume over ``source`` while it is attached.

    :param fields: further ones of :class:`VolumeAttachment`
    """
    connection = {"driver_volume_type": "local", "data": {"device_path": str(source)}}
    wanted = VolumeAttachment(str(uuid.uuid4()), "project", connection, export=export, **fields)
    volume, _ = konnector.attach(wanted)
    try:
        yield volume
    finally:
        konnector.detach(wanted.volume)


@contextlib.contextmanager
def loop_device(source: Path) -> Iterator[str]:
    """A loop device over ``source``."""
    made = run("losetup", "--direct-io=on", "--show", "--find", str(source))
    try:
        yield made
    finally:
        run("losetup", "--detach", made)


def run(*command: str) -> str:
    """What a program prints.

    :raises PeerError: with what it said, when it fails
    """
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise PeerError(f"`{' '.join(command)}` failed: {ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout.strip()
