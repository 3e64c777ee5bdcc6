"""Floors of volumes that share a pool: the rate of each, in each second, against its floor and its part of the rest.

Three volumes with floors of 30, 20 and 10 MB/s, in a pool that is said to carry 90 MB/s, are loaded without a pause:
each should have its floor and a third of what is left.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.cluster import ClusterVolume, volume_cluster

_MB: Final = 1_000_000
_POOL: Final = 90
_FLOORS: Final = (30, 20, 10)
_EXPECTED: Final = tuple(floor + (_POOL - sum(_FLOORS)) / len(_FLOORS) for floor in _FLOORS)
_LIMIT: Final = 3.0
#: Measure after so many seconds in a row with at most this error, in percent; after _SETTLE seconds in any case.
_NEAR_SECONDS: Final = 3
_NEAR: Final = 10.0
_SETTLE: Final = 30
_LOADS: Final = {"reads": "randread", "writes": "randwrite"}


def measure(scale: Scale) -> list[Figure]:
    """A row of reads and one of writes.

    :raises PeerError: for users other than root, and if I/O failed
    """
    with volume_cluster(scale, "floors") as cluster, contextlib.ExitStack() as stack:
        volumes = [stack.enter_context(cluster.volume(f"v{floor}")) for floor in _FLOORS]
        pool = cluster.pool()
        free = {name: _free(scale, volumes, load) for name, load in _LOADS.items()}
        rates = {"read_bw": f"{_POOL}MBps", "write_bw": f"{_POOL}MBps"}
        cluster.api.calibrate_pool(pool, **rates, read_iops=100_000, write_iops=100_000)
        for volume, floor in zip(volumes, _FLOORS, strict=True):
            floors = f"get_bw={floor}MBps put_bw={floor}MBps"
            cluster.api.create_policy(f"FOR VOLUME {volume.id} DO SET bandwidth WITH {floors}", wait=10)
        return [_row(scale, volumes, name, free[name]) for name in _LOADS]


def _free(scale: Scale, volumes: Sequence[ClusterVolume], load: str) -> float:
    """MB that the volumes move in a second without limits."""
    say("volume floors: without limits")
    with contextlib.ExitStack() as stack:
        for volume in volumes:
            stack.enter_context(volume.loaded(load))
        return sum(map(statistics.mean, _rates(volumes, scale.pick(5, 2))))


def _row(scale: Scale, volumes: Sequence[ClusterVolume], name: str, free: float) -> Figure:
    say(f"volume floors: {name}")
    with contextlib.ExitStack() as stack:
        for volume in volumes:
            stack.enter_context(volume.loaded(_LOADS[name]))
        settled, near = 0, 0
        while settled < _SETTLE and near < _NEAR_SECONDS:
            near = near + 1 if _error([one[0] for one in _rates(volumes, 1)]) <= _NEAR else 0
            settled += 1
        rates = _rates(volumes, scale.pick(30, 5))
    means = [statistics.mean(one) for one in rates]
    worst = max(map(_error, zip(*rates, strict=True)))
    beside = (
        f"{' / '.join(f'{one:.1f}' for one in means)} of {' / '.join(f'{one:.0f}' for one in _EXPECTED)} MB/s"
        f" (after {settled} s); worst second {worst:.1f} %;"
        f" {_POOL} MB/s in all; without limits this machine gives {free:.0f}"
    )
    what = f"{name} of three volumes with floors of 30, 20 and 10 of 90 MB/s: mean error"
    return at_most(f"volume floors {name}", what, _error(means), _LIMIT, "%", beside, 2, rates=rates)


def _rates(volumes: Sequence[ClusterVolume], seconds: int) -> list[list[float]]:
    """MB that each volume moved in each of some seconds."""
    found: list[list[float]] = [[] for _ in volumes]
    before, at = [one.moved() for one in volumes], time.monotonic()
    for _ in range(seconds):
        time.sleep(1.0)
        after, now = [one.moved() for one in volumes], time.monotonic()
        for rates, old, new in zip(found, before, after, strict=True):
            rates.append((new - old) / (now - at) / _MB)
        before, at = after, now
    return found


def _error(rates: Sequence[float]) -> float:
    """The mean distance of rates from the expected ones, in percent of these."""
    return statistics.mean(100 * abs(rate / wanted - 1) for rate, wanted in zip(rates, _EXPECTED, strict=True))
