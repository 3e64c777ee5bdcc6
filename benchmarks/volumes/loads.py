"""The loads of the benchmarks of volumes, and pairs of runs of them.

Pairs are interleaved: a run of the first, a run of the second, in alternating order; the median of the ratios within
a pair counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.harness.figures import Figure, at_least, reported
from benchmarks.harness.fio import FioRates, device_target, nbd_target, run_fio
from benchmarks.harness.scale import Scale, say

#: Bytes of the volumes.
SIZE: Final = 1 << 30
#: Seconds of each run of a pair.
_SECONDS: Final = 3


@dataclass(frozen=True, slots=True)
class Load:
    """A load of fio: ``kind`` is its ``rw``."""

    title: str
    kind: str
    block: str
    depth: int


SMALL: Final = (Load("4 KB random reads", "randread", "4k", 32), Load("4 KB random writes", "randwrite", "4k", 32))
LARGE: Final = (Load("1 MB reads", "read", "1M", 4), Load("1 MB writes", "write", "1M", 4))

#: Runs a load for some seconds.
Run = Callable[[Load, int], FioRates]


def on_nbd(uri: str) -> Run:
    """Loads of an NBD server."""
    target = (*nbd_target(uri), f"--size={SIZE}")
    return lambda load, seconds: run_fio(target, load.kind, load.block, seconds, load.depth)


def on_device(path: str) -> Run:
    """Loads of a block device."""
    target = device_target(path, SIZE)
    return lambda load, seconds: run_fio(target, load.kind, load.block, seconds, load.depth)


def compare(
    scale: Scale,
    name: str,
    what: str,
    runs: tuple[Run, Run],
    load: Load,
    least: float | None = None,
    pairs: int = 10,
) -> Figure:
    """Operations per second of the first as a multiple of those of the second.

    :param least: the target; None: it is only reported
    :param pairs: how many of a full run
    """
    say(f"{name}: {load.title}")
    cycles = []
    for number in range(scale.pick(pairs, 2)):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        found = {which: runs[which](load, scale.pick(_SECONDS, 1)).iops for which in order}
        cycles.append((found[0], found[1]))
    ratios = [one / other for one, other in cycles]
    medians = [statistics.median(column) for column in zip(*cycles, strict=True)]
    beside = f"{medians[0]:,.0f} and {medians[1]:,.0f} a second; pairs {min(ratios):.3f} to {max(ratios):.3f}"
    row = (f"{name} {load.title}", f"{what}: {load.title}", statistics.median(ratios))
    if least is None:
        return reported(*row, "×", beside, ratios=ratios)
    return at_least(*row, least, "×", beside, ratios=ratios)
