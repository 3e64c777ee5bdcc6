"""The processes of a volume are replaced or killed, repeatedly, under a mounted ext4 whose content fio verifies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.fio import Fio, FioRates, device_target
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, cinder_export, fill, make_konnector, run
from benchmarks.volumes.loads import SIZE

from sluice_block.konnector.volume import AttachedVolume
from sluice_volumes.messages import StackStep

#: Gets the number of its earlier calls.
Disturb = Callable[[AttachedVolume, int], None]

_LONGEST_PAUSE: Final = 0.15
_FILE: Final = 256 << 20
_DEPTH: Final = 16
#: Each block is read again and compared before so many others are written.
_VERIFY: Final = ("--verify=crc32c", "--verify_fatal=1", "--verify_backlog=64", "--verify_state_save=0")
#: Seconds between two disturbances.
_PERIOD: Final = 0.4


def measure(scale: Scale) -> list[Figure]:
    """The longest request of each disturbance, and of undisturbed volumes.

    :raises PeerError: for users other than root, if a request failed, and if content or file system are damaged
    """
    konnector = make_konnector(scale)
    source, mount = scale.folder / "volume", scale.folder / "mount"
    mount.mkdir()
    fill(source, SIZE)
    with cinder_export(scale, source) as export:

        def replace_stack(volume: AttachedVolume, number: int) -> None:
            stack = (StackStep("readahead"),) if number % 2 == 0 else ()
            konnector.replace_stack(volume.attachment.volume, stack)

        def kill_nbdkit(volume: AttachedVolume, _: int) -> None:
            process = volume.stack.process()
            assert process is not None
            process.end(patience=0)
            konnector.check()

        rows: tuple[tuple[str, str, Mapping[str, Any] | None, Disturb], ...] = (
            (
                "volume replace",
                "its stack is replaced",
                None,
                replace_stack,
            ),
            ("volume kill", "its nbdkit is killed", None, kill_nbdkit),
            ("volume nbd kill", "its nbdkit is killed, over Cinder's NBD export", export.connection, kill_nbdkit),
            ("volume export kill", "Cinder's NBD export is killed", export.connection, lambda *_: export.kill()),
        )
        figures = []
        for name, what, connection, disturb in rows:
            say(f"{name}: a mounted ext4")
            fill(source, SIZE)
            with attached(konnector, source, connection=connection) as volume:
                found, took = _verified(scale, volume, mount, disturb)
            beside = (
                f"{statistics.median(took):.3f} s until it is done, at most {max(took):.3f} s;"
                f" {found.iops:.0f} requests of 64 KB a second, no error; e2fsck is clean"
            )
            what = f"longest request that fio verifies on ext4 while {what} {len(took)} times"
            figures.append(at_most(name, what, found.longest, _LONGEST_PAUSE, "s", beside, took=took))
    return figures


def _verified(scale: Scale, volume: AttachedVolume, mount: Path, disturb: Disturb) -> tuple[FioRates, list[float]]:
    """fio's results on a file system on the volume, and the seconds of each disturbance."""
    took: list[float] = []
    device = volume.device()
    run("mkfs.ext4", "-q", device)
    run("mount", device, str(mount))
    try:
        target = device_target(str(mount / "file"), _FILE)
        load = Fio(target, "randrw", "64k", scale.pick(60, 5), _DEPTH, _VERIFY)
        try:
            while load.is_running():
                begin = time.monotonic()
                disturb(volume, len(took))
                took.append(time.monotonic() - begin)
                time.sleep(_PERIOD)
            found = load.finish()
        finally:
            load.kill()
    finally:
        run("umount", str(mount))
    run("e2fsck", "-fn", device)
    return found, took
