"""How exactly the filter ``throttle`` keeps limits: four volumes at once, each behind an nbdkit of its own.

fio's nbd engine loads each without a pause; what it counted from its first request to the answer of its last one is
compared with the limit.  There is no ramp, so a burst at the start would show.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.fio import FioRates, nbd_target, run_fio
from benchmarks.harness.scale import Scale, say
from tests.support.block.nbd import serve

from sluice_block.stack.build import build
from sluice_block.stack.page import Limits, Page

#: Per second, one for each volume.
BYTES: Final = (3_000_000, 5_000_000, 7_000_000, 7_000_000)
OPERATIONS: Final = (3000, 5000, 7000, 7000)
LIMIT: Final = 2.0
_LOADS: Final = {"reads": "randread", "writes": "randwrite", "50/50": "randrw"}
_FREE: Final = (Limits(),) * len(OPERATIONS)


def measure(scale: Scale) -> list[Figure]:
    """Rows for bytes, in small and in large requests, and one for operations: of reads, writes and both."""
    folder = scale.folder / "throttle"
    folder.mkdir()
    built = build(folder / "built")
    figures = []
    for name, load in _LOADS.items():
        for block, title in (("64k", "64 KB"), ("1M", "1 MB")):
            say(f"throttle: bytes of {name}, {title}")
            limits = [Limits(both_bytes=rate) for rate in BYTES]
            found = _rates(folder, built, limits, load, block, scale.pick(60, 3))
            figures.append(_row(f"bytes {name} {title}", BYTES, [one.bandwidth for one in found]))
        say(f"throttle: operations of {name}")
        free = sum(one.iops for one in _rates(folder, built, _FREE, load, "4k", scale.pick(5, 2)))
        limits = [Limits(both_ops=rate) for rate in OPERATIONS]
        found = _rates(folder, built, limits, load, "4k", scale.pick(15, 3))
        beside = f"{sum(OPERATIONS):,} in all; without limits this machine gives {free:,.0f}"
        figures.append(_row(f"operations {name}", OPERATIONS, [one.iops for one in found], beside))
    shutil.rmtree(folder, ignore_errors=True)
    return figures


def _row(name: str, rates: Sequence[int], found: Sequence[float], beside: str = "") -> Figure:
    errors = [100 * (measured / rate - 1) for rate, measured in zip(rates, found, strict=True)]
    rows = [f"{measured:.0f} of {rate}" for rate, measured in zip(rates, found, strict=True)]
    what = f"{name} per second, four volumes at once: largest error"
    text = "; ".join([*rows, *([beside] if beside else [])])
    return at_most(f"throttle {name}", what, max(map(abs, errors)), LIMIT, "%", text, 2, errors=errors)


def _rates(folder: Path, built: Path, limits: Sequence[Limits], load: str, block: str, seconds: int) -> list[FioRates]:
    """What volumes do with ``limits``, all loaded at once for ``seconds``."""
    with contextlib.ExitStack() as stack:
        uris = [_volume(stack, folder, built, f"volume{number}", limit) for number, limit in enumerate(limits)]
        with ThreadPoolExecutor(len(uris)) as pool:
            return list(pool.map(lambda uri: run_fio(nbd_target(uri), load, block, seconds), uris))


def _volume(stack: contextlib.ExitStack, folder: Path, built: Path, name: str, limits: Limits) -> str:
    file = folder / f"{name}.page"
    file.unlink(missing_ok=True)
    page = Page.create(file)
    page.set_limits(limits)
    page.close()
    pages = (f"nop-page={file}", f"throttle-page={file}")
    return stack.enter_context(serve(folder, built, ["nop", "throttle"], "memory", "256M", *pages, name=name)).uri
