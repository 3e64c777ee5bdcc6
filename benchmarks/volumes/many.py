"""Many volumes on one konnector: the time of each attach, and the cost of idle volumes."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most, reported
from benchmarks.harness.pairs import quantile
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, make_konnector
from benchmarks.volumes.loads import SIZE

from sluice_block.konnector.volume import AttachedVolume

_MANY: Final = 64
_LONGEST_ATTACH: Final = 2.0


def measure(scale: Scale) -> list[Figure]:
    """Rows of so many volumes at once, idle.

    :raises PeerError: for users other than root
    """
    konnector = make_konnector(scale)
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
            volumes.append(stack.enter_context(attached(konnector, source)))
            took.append(time.monotonic() - begin)
        what = f"attach of each of {count} volumes to one konnector, the slowest"
        beside = f"median {statistics.median(took):.2f} s, p95 {quantile(took, 0.95):.2f} s"
        return [at_most("volume attach", what, max(took), _LONGEST_ATTACH, "s", beside), *_idle(scale, volumes)]


def _idle(scale: Scale, volumes: list[AttachedVolume]) -> Iterator[Figure]:
    count = len(volumes)
    pids = [pid for volume in volumes for pid in _processes(volume)]
    memory = sum(map(_memory, pids)) / count / 1e6
    what = f"memory of the processes of a volume, the mean of {count} idle ones (proportional set size)"
    yield reported("volume memory", what, memory, "MB", f"{len(pids) / count:g} processes each", 1)
    begin, seconds = cpu_seconds(pids), scale.pick(30, 3)
    time.sleep(seconds)
    idle = 100 * (cpu_seconds(pids) - begin) / seconds
    yield reported("volume idle", f"CPU of the processes of {count} idle volumes", idle, "% of a core", digits=2)


def _processes(volume: AttachedVolume) -> Iterator[int]:
    records = (part.process() for part in (volume.stack, volume.source, volume.front, volume.mount))
    return (one.pid for one in records if one is not None)


def _memory(pid: int) -> int:
    """Bytes of a process, with its part of shared ones."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
