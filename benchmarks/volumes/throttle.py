"""The accuracy of limits on four attached volumes at once.

fio loads each block device without a pause; its count from its first request to the answer of its last one is
compared with the limit.  There is no ramp, so a burst at the start would show.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.fio import FioRates, device_target, run_fio
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, fill, make_konnector

from sluice_block.datapath.records import VolumeLimits
from sluice_block.konnector.konnector import Konnector

#: Per second, one for each volume.
BYTES: Final = (3_000_000, 5_000_000, 7_000_000, 7_000_000)
OPERATIONS: Final = (3000, 5000, 7000, 7000)
LIMIT: Final = 1.0
_LOADS: Final = {"reads": "randread", "writes": "randwrite", "50/50": "randrw"}
_FREE: Final = (VolumeLimits(),) * len(OPERATIONS)
_SIZE: Final = 256 << 20


def measure(scale: Scale) -> list[Figure]:
    """Rows for bytes, in small and in large requests, and one for operations: of reads, writes and both.

    :raises PeerError: for users other than root
    """
    konnector = make_konnector(scale)
    for number in range(len(BYTES)):
        fill(scale.folder / f"volume{number}", _SIZE)
    figures = []
    for name, load in _LOADS.items():
        for block, title in (("64k", "64 KB"), ("1M", "1 MB")):
            say(f"throttle: bytes of {name}, {title}")
            limits = [VolumeLimits(max_bw=rate) for rate in BYTES]
            found = _rates(scale, konnector, limits, load, block, scale.pick(60, 3))
            figures.append(_row(f"bytes {name} {title}", BYTES, [one.bandwidth for one in found]))
        say(f"throttle: operations of {name}")
        free = sum(one.iops for one in _rates(scale, konnector, _FREE, load, "4k", scale.pick(5, 2)))
        limits = [VolumeLimits(max_iops=rate) for rate in OPERATIONS]
        found = _rates(scale, konnector, limits, load, "4k", scale.pick(15, 3))
        beside = f"{sum(OPERATIONS):,} in all; without limits this machine gives {free:,.0f}"
        figures.append(_row(f"operations {name}", OPERATIONS, [one.iops for one in found], beside))
    return figures


def _row(name: str, rates: Sequence[int], found: Sequence[float], beside: str = "") -> Figure:
    errors = [100 * (measured / rate - 1) for rate, measured in zip(rates, found, strict=True)]
    rows = [f"{measured:.0f} of {rate}" for rate, measured in zip(rates, found, strict=True)]
    what = f"{name} per second, four volumes at once: largest error"
    text = "; ".join([*rows, *([beside] if beside else [])])
    return at_most(f"throttle {name}", what, max(map(abs, errors)), LIMIT, "%", text, 2, errors=errors)


def _rates(
    scale: Scale, konnector: Konnector, limits: Sequence[VolumeLimits], load: str, block: str, seconds: int
) -> list[FioRates]:
    """Rates of volumes with ``limits``, all loaded at once for ``seconds``."""
    with contextlib.ExitStack() as stack:
        devices = [
            stack.enter_context(attached(konnector, scale.folder / f"volume{number}", limits=limit)).device()
            for number, limit in enumerate(limits)
        ]
        with ThreadPoolExecutor(len(devices)) as pool:
            return list(pool.map(lambda one: run_fio(device_target(one, _SIZE), load, block, seconds), devices))
