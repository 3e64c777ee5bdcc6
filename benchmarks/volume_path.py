"""The path of an attached volume: its rates, pauses when its stack is replaced, and what many of them take.

As root: loop devices and mounts.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cpu import cpu_seconds
from benchmarks.figures import Figure, at_most, reported
from benchmarks.pairs import quantile
from benchmarks.scale import Scale, say
from benchmarks.volume_loads import LARGE, SIZE, SMALL, Run, compare, on_device, on_nbd
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.records import BLOCK, NBD, VolumeAttachment
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.build import build
from sluice_core.errors import PeerError
from sluice_core.volumes.messages import StackStep

_MANY: Final = 64
_LONGEST_ATTACH: Final = 2.0
_LONGEST_PAUSE: Final = 0.3


def measure(scale: Scale) -> list[Figure]:
    """Rows of both exports, of replacements, and of many volumes.

    :raises PeerError: for others than root
    """
    if os.geteuid() != 0:
        raise PeerError("loop devices and mounts are root's")
    run = scale.folder / "k"
    run.mkdir(mode=0o700)
    konnector = Konnector(scale.folder / "state", run, build(scale.folder / "built"), scale.folder / "logs")
    source = scale.folder / "volume"
    with open("/dev/urandom", "rb") as random, source.open("wb") as file:
        for _ in range(SIZE >> 20):
            file.write(random.read(1 << 20))
    figures = [*_rates(scale, konnector, source), *_replacements(scale, konnector, source)]
    source.unlink()
    return [*figures, *_many(scale, konnector)]


def _rates(scale: Scale, konnector: Konnector, source: Path) -> Iterator[Figure]:
    for export, name, what in (
        (BLOCK, "volume device", "block device (nbdfuse), against a loop device on the same file"),
        (NBD, "volume socket", "NBD socket, against a loop device on the same file"),
    ):
        with _attached(konnector, source, export) as volume, _loop_device(source) as bare:
            path = volume.device()
            own: Run = on_device(path) if export == BLOCK else on_nbd(path)
            for load in (*SMALL, *LARGE):
                yield compare(scale, name, what, (own, on_device(bare)), load)


def _replacements(scale: Scale, konnector: Konnector, source: Path) -> Iterator[Figure]:
    """A mounted ext4 under verified load, whose volume gets other stacks."""
    say("volume replace: a mounted ext4")
    mount = scale.folder / "mount"
    mount.mkdir()
    took: list[float] = []
    with _attached(konnector, source) as volume:
        device = volume.device()
        _run("mkfs.ext4", "-q", device)
        _run("mount", device, str(mount))
        try:
            file = mount / "file"
            _run("fallocate", "--length", str(256 << 20), str(file))
            with VerifiedLoad(str(file), size=256 << 20) as load:
                for number in range(scale.pick(100, 4)):
                    load.wait_for(100)
                    begin = time.monotonic()
                    konnector.replace_stack(
                        volume.attachment.volume, (StackStep("readahead"),) if number % 2 == 0 else ()
                    )
                    took.append(time.monotonic() - begin)
        finally:
            _run("umount", str(mount))
        _run("e2fsck", "-fn", device)
    what = f"longest request of a verified load on ext4 while its volume's stack is replaced {len(took)} times"
    beside = f"a replacement takes {statistics.median(took):.3f} s, at most {max(took):.3f} s; e2fsck is clean"
    yield at_most("volume replace", what, load.longest, _LONGEST_PAUSE, "s", beside)


def _many(scale: Scale, konnector: Konnector) -> Iterator[Figure]:
    """So many volumes at once, idle."""
    count = scale.pick(_MANY, 4)
    say(f"volume many: {count} volumes")
    took: list[float] = []
    with contextlib.ExitStack() as stack:
        volumes = []
        for number in range(count):
            source = scale.folder / f"volume-{number}"
            with source.open("wb") as file:
                file.truncate(SIZE)
            begin = time.monotonic()
            volumes.append(stack.enter_context(_attached(konnector, source)))
            took.append(time.monotonic() - begin)
        what = f"attach of each of {count} volumes to one konnector, the slowest"
        beside = f"median {statistics.median(took):.2f} s, p95 {quantile(took, 0.95):.2f} s"
        yield at_most("volume attach", what, max(took), _LONGEST_ATTACH, "s", beside)
        pids = [pid for volume in volumes for pid in _processes(volume)]
        memory = sum(map(_memory, pids)) / count / 1e6
        what = f"memory of the processes of a volume, the mean of {count} idle ones (proportional set size)"
        yield reported("volume memory", what, memory, "MB", f"{len(pids) / count:g} processes each", 1)
        begin_cpu, seconds = cpu_seconds(pids), scale.pick(30, 3)
        time.sleep(seconds)
        idle = 100 * (cpu_seconds(pids) - begin_cpu) / seconds
        yield reported("volume idle", f"CPU of the processes of {count} idle volumes", idle, "% of a core", digits=2)


def _processes(volume: AttachedVolume) -> list[int]:
    records = (part.process() for part in (volume.stack, volume.source, volume.front, volume.mount))
    return [one.pid for one in records if one is not None]


def _memory(pid: int) -> int:
    """Bytes of a process, of what it shares its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@contextlib.contextmanager
def _attached(konnector: Konnector, source: Path, export: str = BLOCK) -> Iterator[AttachedVolume]:
    connection = {"driver_volume_type": "local", "data": {"device_path": str(source)}}
    wanted = VolumeAttachment(str(uuid.uuid4()), "project", connection, export=export)
    volume, _ = konnector.attach(wanted)
    try:
        yield volume
    finally:
        konnector.detach(wanted.volume)


@contextlib.contextmanager
def _loop_device(source: Path) -> Iterator[str]:
    made = _run("losetup", "--direct-io=on", "--show", "--find", str(source))
    try:
        yield made
    finally:
        _run("losetup", "--detach", made)


def _run(*command: str) -> str:
    """
    :raises PeerError: with what it said, when it fails
    """
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise PeerError(f"`{' '.join(command)}` failed: {ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout.strip()
