"""Volumes of a konnector in this process, over local files.  As root: loop devices and mounts."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.scale import Scale

from sluice_block.cinder_nbd.exports import SINGLE, Exports
from sluice_block.datapath.records import BLOCK, VolumeAttachment
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.build import build
from sluice_core.errors import PeerError

_BLOCK: Final = 1 << 20


def make_konnector(scale: Scale) -> Konnector:
    """A konnector without volumes, with separate folders, like one on another machine.

    :raises PeerError: for users other than root
    """
    if os.geteuid() != 0:
        raise PeerError("loop devices and mounts are root's")
    folder = Path(tempfile.mkdtemp(prefix="k", dir=scale.folder))
    return Konnector(folder / "state", folder / "run", build(scale.folder / "built"), folder / "logs")


def fill(file: Path, size: int, zeros: int = 0) -> None:
    """Write a file of random bytes after some zeros, so that writes never allocate space.

    :param size: bytes, whole MiB
    :param zeros: bytes at its beginning, whole MiB
    """
    with open("/dev/urandom", "rb") as random, file.open("wb") as target:
        for at in range(0, size, _BLOCK):
            target.write(bytes(_BLOCK) if at < zeros else random.read(_BLOCK))


@dataclass(frozen=True, slots=True)
class CinderExport:
    """The target of the NBD driver for Cinder's users: an nbdkit on a unix socket."""

    exports: Exports
    folder: Path
    volume: str

    @property
    def connection(self) -> Mapping[str, Any]:
        """The connection as Cinder returns it for an attachment."""
        found = self.exports.find(self.volume)
        assert found is not None
        return {"driver_volume_type": "nbd", "data": {"uri": self.exports.uri(found)}}

    def kill(self) -> None:
        """Kill its nbdkit, and start it again like the driver."""
        (pid_file,) = self.folder.glob("*.pid")
        server = os.pidfd_open(int(pid_file.read_text(encoding="ascii")))
        try:
            signal.pidfd_send_signal(server, signal.SIGKILL)
            select.select([server], [], [])
        finally:
            os.close(server)
        self.exports.restore(self.volume)


@contextlib.contextmanager
def cinder_export(scale: Scale, source: Path) -> Iterator[CinderExport]:
    """An export of ``source`` by the driver's code, without Cinder."""
    folder, volume = Path(tempfile.mkdtemp(prefix="e", dir=scale.folder)), str(uuid.uuid4())
    exports = Exports(folder, "127.0.0.1", range(0), lambda command: _check(*command))
    exports.prepare()
    exports.open(volume, "volume", source, "benchmark", readonly=False, tls=False, threads=SINGLE)
    try:
        yield CinderExport(exports, folder, volume)
    finally:
        exports.close(volume)


@contextlib.contextmanager
def attached(
    konnector: Konnector,
    source: Path,
    export: str = BLOCK,
    connection: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Iterator[AttachedVolume]:
    """A volume over ``source``, attached during the context.

    :param connection: Cinder's, if not that of the file itself
    :param fields: further ones of :class:`VolumeAttachment`
    """
    connection = connection or {"driver_volume_type": "local", "data": {"device_path": str(source)}}
    wanted = VolumeAttachment(str(uuid.uuid4()), "project", connection, export=export, **fields)
    volume, _ = konnector.attach(wanted)
    try:
        yield volume
    finally:
        konnector.detach(wanted.volume)


@contextlib.contextmanager
def loop_device(source: Path) -> Iterator[str]:
    """A loop device over ``source``, through the page cache like nbdkit's plugin for files, and without a scheduler."""
    made = run("losetup", "--direct-io=off", "--show", "--find", str(source))
    try:
        (Path("/sys/block") / Path(made).name / "queue" / "scheduler").write_text("none", encoding="ascii")
        yield made
    finally:
        run("losetup", "--detach", made)


def run(*command: str) -> str:
    """Return the output of a program.

    :raises PeerError: with its output, if it fails
    """
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise PeerError(f"`{' '.join(command)}` failed: {ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout.strip()


def _check(*command: str) -> None:
    run(*command)
