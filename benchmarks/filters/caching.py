"""Caching on one proxy: hot sets on fast disks and on slow ones, and the cost of a miss.

The hot set is read through all three proxies, which differ in nothing but Sluice.  Fast disks are the
folder that everything is in.  The slow disk is a file system on a loop device to which the kernel grants 150
reads a second (blkio throttling, cgroup version 1, as root); where that cannot be had, the row says so.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.harness.blocks import Bench, Block, Work, of
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, ORDERS, SLUICE, Comparison, compare
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, Trio
from benchmarks.harness.works import expect, getting, make_container, put_all

from sluice_aio.base.layout import OBJECT_DEVICES
from sluice_aio.base.setup import CACHE, PROXY, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.cache.write_marks import open_write_marks
from sluice_core.errors import PeerError
from sluice_core.testing import assignment

#: Size → required multiple of the requests per second of plain Swift.
TARGETS: Final = {10_000: 1.6, 300_000: 2.0, 1_000_000: 2.0}
SLOW_SIZE: Final = 300_000
SLOW_TARGET: Final = 10.0
MISS_SIZES: Final = (10_000, 1_000_000)
MISS_LIMIT: Final = 1.05
READS_PER_SECOND: Final = 150
#: Default read-ahead of the kernel in KB; a loop device takes that of the device below it.
_READ_AHEAD: Final = 128
HOT: Final = 20
#: Requests of a restarted proxy that are not counted.
_WARM: Final = 20
CONTAINER: Final = "cached"
CLIENTS: Final = 4
#: Without s3api, as in the pipeline of Swift's sample configuration.
_SETUP: Final = Setup(parts=frozenset({PROXY, CACHE}), proxy_workers=1, s3api=False)
#: Slow disks whose pages are not in memory: otherwise most reads of a small hot set never reach the disk.
#: Two workers, because one is busy at ten times the rate of such a disk.
_SLOW_SETUP: Final = replace(_SETUP, proxy_workers=2, storage_options={"keep_cache_size": "0"})
_BLKIO: Final = Path("/sys/fs/cgroup/blkio")
_IMAGE_SIZE: Final = "2G"


class CachingTrio(Trio):
    """The three proxies; the one with Sluice has a cache."""

    def __init__(self, folder: Path, setup: Setup = _SETUP) -> None:
        super().__init__(folder, setup)

    def await_trust(self) -> None:
        """Wait until the agent confirms the content of the cache.

        :raises PeerError: if it does not within half a minute
        """
        self.settle()
        with contextlib.closing(open_write_marks(self.layout.cache)) as marks:
            if not marks.is_trusted():
                raise PeerError("the agent does not vouch for the cache")


def measure(scale: Scale) -> list[Figure]:
    """Fast disks, misses, then slow disks."""
    figures = []
    with CachingTrio(scale.folder / "cache") as trio:
        bench = _prepared(trio)
        for size, target in TARGETS.items():
            figures.append(_hot(bench, size, target, scale.pick(12, 3), scale.pick(200, 40)))
        for size in MISS_SIZES:
            figures.append(_miss(bench, size, scale))
    shutil.rmtree(scale.folder / "cache", ignore_errors=True)
    return [*figures, *_slow(scale)]


def _prepared(trio: CachingTrio) -> Bench:
    make_container(trio.client(SLUICE), CONTAINER)
    trio.assign([assignment("cached.0", f"{ACCOUNT}/{CONTAINER}", keyword="caching", stage=50)])
    trio.check_in_force(CONTAINER, "caching")
    trio.await_trust()
    return Bench(trio)


def _hot(bench: Bench, size: int, target: float, cycles: int, count: int, disks: str = "") -> Figure:
    """All instances read the same few objects repeatedly."""
    say(f"caching: hot set of {size} bytes{disks}")
    paths = [f"{CONTAINER}/hot-{size}-{number}" for number in range(HOT)]
    put_all(bench.trio.client("plain"), paths, random.Random(size).randbytes(size))
    works: dict[str, Work] = {name: getting(paths, size) for name in INSTANCES}
    bench.warm(works, 3 * HOT)
    bench.trio.settle()
    blocks = bench.cycles(works, cycles, count, CLIENTS)
    rate = compare(of(blocks, lambda block: block.rate))
    cpu = compare(of(blocks, lambda block: block.cpu_per_request("proxy", "objects")))
    what = f"{_named(size)}{disks}"
    workers = bench.trio.setup.proxy_workers
    return _rate_figure(f"caching {what}", f"GET of {what}, {HOT} hot objects", rate, target, cpu, workers)


def _rate_figure(name: str, what: str, rate: Comparison, target: float, cpu: Comparison, workers: int) -> Figure:
    rates = " / ".join(f"{rate.medians[one]:.0f}" for one in INSTANCES)
    note = f"{rates} /s; {rate.beside()}; CPU of proxy and object servers {cpu.ratio:.2f} ×"
    proxy = "one proxy worker" if workers == 1 else f"one proxy, {workers} workers"
    what = f"{what}, {CLIENTS} clients, {proxy}: requests/s × plain"
    return Figure(name, what, rate.ratio, f"{rate.ratio:.2f} ×", f"≥ {target:g} ×", rate.ratio >= target, note)


def _miss(bench: Bench, size: int, scale: Scale) -> Figure:
    """Objects that each instance reads for the first time; the proxies are restarted in all orders."""
    rounds, cycles, count = scale.pick(6, 1), scale.pick(6, 3), scale.pick(40, 15)
    reads = rounds * (cycles * count + _WARM) * len(INSTANCES)
    names = [f"{CONTAINER}/miss-{size}-{number}" for number in range(reads)]
    say(f"caching: {reads} objects of {size} bytes that nobody has read")
    put_all(bench.trio.client("plain"), names, random.Random(size).randbytes(size))
    fresh = iter(names)

    def reading(client: SwiftHttp, number: int) -> None:
        expect(client.request("GET", next(fresh)), 200, size)

    works: dict[str, Work] = dict.fromkeys(INSTANCES, reading)
    blocks: list[dict[str, Block]] = []
    for number in range(rounds):
        order = ORDERS[number % len(ORDERS)]
        say(f"caching: misses of {size} bytes, round {number + 1} of {rounds}, started in the order {', '.join(order)}")
        bench.trio.restart(order)
        bench.trio.settle()
        bench.warm(works, _WARM)
        blocks += bench.cycles(works, cycles, count, first=number * cycles)
    latency = compare(of(blocks, lambda block: block.latency))
    cpu = compare(of(blocks, lambda block: block.cpu_per_request("proxy", "objects")))
    note = f"{latency.milliseconds(2)}; {latency.beside()}; CPU of proxy and object servers {cpu.ratio:.3f} ×"
    what = f"GET of {_named(size)}, never read before: median latency × plain"
    return at_most(f"caching miss {_named(size)}", what, latency.ratio, MISS_LIMIT, "×", note)


def _slow(scale: Scale) -> list[Figure]:
    name = f"caching {_named(SLOW_SIZE)}, slow disks"
    trio = CachingTrio(scale.folder / "slow", _SLOW_SETUP)
    try:
        with _slow_disk(scale.folder / "slow-disk", trio), trio:
            _throttle(scale.folder / "slow-disk", trio)
            bench = _prepared(trio)
            return [_hot(bench, SLOW_SIZE, SLOW_TARGET, scale.pick(6, 2), scale.pick(240, 30), ", slow disks")]
    except (OSError, subprocess.CalledProcessError) as error:
        return [Figure(name, "requests/s × plain", 0.0, "not measured", f"≥ {SLOW_TARGET:g} ×", None, str(error))]
    finally:
        shutil.rmtree(scale.folder / "slow", ignore_errors=True)


@contextlib.contextmanager
def _slow_disk(folder: Path, trio: Trio) -> Iterator[None]:
    """A file system on a loop device below all object servers' device folders."""
    folder.mkdir(parents=True)
    image, mount = folder / "image", folder / "disk"
    mount.mkdir()
    _run("truncate", "-s", _IMAGE_SIZE, str(image))
    _run("mkfs.ext4", "-q", "-F", str(image))
    _run("mount", "-o", "loop", str(image), str(mount))
    try:
        for server in OBJECT_DEVICES:
            (mount / server).mkdir()
            place = trio.layout.devices / server
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(mount / server)
        yield
    finally:
        _run("umount", str(mount))
        with contextlib.suppress(OSError):
            _group(folder).rmdir()


def _throttle(folder: Path, trio: Trio) -> None:
    """Limit the object servers to few reads a second from that device."""
    group = _group(folder)
    group.mkdir()
    device = _run("findmnt", "-n", "-o", "MAJ:MIN", str(folder / "disk")).strip()
    Path(f"/sys/dev/block/{device}/queue/read_ahead_kb").write_text(f"{_READ_AHEAD}\n", encoding="ascii")
    (group / "blkio.throttle.read_iops_device").write_text(f"{device} {READS_PER_SECOND}\n", encoding="ascii")
    for server in OBJECT_DEVICES:
        main = trio.cluster.process(server)
        for one in _unique([main.pid, *(member.pid for member in main.session())]):
            (group / "cgroup.procs").write_text(f"{one}\n", encoding="ascii")


def _unique(numbers: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def _group(folder: Path) -> Path:
    return _BLKIO / f"sluice-{folder.parent.name}"


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _named(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1000} KB"
