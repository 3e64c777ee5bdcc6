"""Sentences about volumes: from the answer to a REST call, and from a condition on a metric, to the limit in force.

A limit is in force when it is in the page that the volume's throttle reads with each request.

*Changed limits.*  fio reads and writes a volume while limits come and go.  The time runs from the 201 of ``POST
/policies``.  What the volume moves in the two seconds after that is compared with the limit.

*Conditions.*  Volumes are written to, from a random moment on, until their throttle is in force.  The time runs from
the begin of the write that is one more than the policy allows in a second of the wall clock.  A trial whose writes were
in two seconds before they were enough is left out.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import quantile
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.cluster import USED, ClusterVolume, VolumeCluster, volume_cluster, wait_until

from sluice_core.errors import PeerError

_CHANGED_LIMIT: Final = 1.0
_REACTION_LIMIT: Final = 1.5
_RATES: Final = (5_000_000, 9_000_000)
#: Seconds over which the rate of a volume is compared with its limit.
_MEASURED: Final = 2.0
_VOLUMES: Final = 5
#: Writes in a second that the condition allows, and those that the throttle allows: each waits some ms then.
_THRESHOLD: Final = 20
_LEFT: Final = 200
_BLOCK: Final = 4096
#: No burst begins so near to the end of a second that it could count for the next one.
_MARGIN: Final = 0.08
#: Seconds between two writes above the threshold.
_PAUSE: Final = 0.005


def measure(scale: Scale) -> list[Figure]:
    """A row of limits that are changed, and one of conditions.

    :raises PeerError: for users other than root, if I/O failed, and if a limit does not come into force
    """
    with volume_cluster(scale, "policies") as cluster, contextlib.ExitStack() as stack:
        volumes = [stack.enter_context(cluster.volume(f"v{number}")) for number in range(_VOLUMES)]
        return [_changes(scale, cluster, volumes[0]), _reaction(scale, cluster, volumes)]


def _changes(scale: Scale, cluster: VolumeCluster, volume: ClusterVolume) -> Figure:
    say("volume policies: limits that are changed")
    took, errors = [], []
    with volume.loaded("randrw"):
        free = _moved_per_second(volume) / 1e6
        for number in range(scale.pick(20, 2)):
            rate = _RATES[number % len(_RATES)]
            sentence = f"FOR VOLUME {volume.id} DO SET throttling WITH max_bw={rate // 1_000_000}MBps"
            policy = cluster.api.create_policy(sentence)
            answered = time.time()
            took.append(_wait_for(volume, "both_bytes", rate) - answered)
            errors.append(100 * (_moved_per_second(volume) / rate - 1))
            cluster.api.delete_policy(policy["id"])
            _wait_for(volume, "both_bytes", 0)
    what = "limit changed under load, from the 201 to the limit in force: the longest"
    beside = (
        f"{len(took)} changes, median {quantile(took, 0.5):.2f} s; rate of the {_MEASURED:g} s after that"
        f" {min(errors):+.1f} to {max(errors):+.1f} % off the limit, {free:.0f} MB/s without one; no I/O error"
    )
    return at_most("volume change", what, max(took), _CHANGED_LIMIT, "s", beside, 2, times=took, errors=errors)


def _moved_per_second(volume: ClusterVolume) -> float:
    first, begin = volume.moved(), time.monotonic()
    time.sleep(_MEASURED)
    return (volume.moved() - first) / (time.monotonic() - begin)


def _reaction(scale: Scale, cluster: VolumeCluster, volumes: Sequence[ClusterVolume]) -> Figure:
    say("volume policies: conditions")
    for volume in volumes:
        condition = f"FOR VOLUME {volume.id} WHEN VOLUME_WRITE_IOPS > {_THRESHOLD}"
        cluster.api.create_policy(f"{condition} DO SET throttling WITH write_iops={_LEFT} TRANSIENT", wait=10)
    found: list[float | None] = []
    with ThreadPoolExecutor(len(volumes)) as pool:
        for _ in range(scale.pick(20, 2)):
            found += pool.map(_trial, volumes)
    times = [one for one in found if one is not None]
    if not times:
        raise PeerError("all writes of all trials were in two seconds before they were enough")
    beside = (
        f"{len(times)} firings, p50 {quantile(times, 0.5):.2f}, worst {max(times):.2f} s;"
        f" {found.count(None)} with a slow write left out"
    )
    what = "write that crosses the threshold to the throttle in force, windows of 1 s: p99"
    return at_most("volume reaction", what, quantile(times, 0.99), _REACTION_LIMIT, "s", beside, 2, times=times)


def _trial(volume: ClusterVolume) -> float | None:
    """Seconds from the write that crosses the threshold; None if it is not certain which one does."""
    _wait_for(volume, "write_ops", 0)
    time.sleep(random.uniform(0.0, 1.0))
    if time.time() % 1.0 > 1.0 - _MARGIN:
        time.sleep(2 * _MARGIN)
    buffer = mmap.mmap(-1, _BLOCK)  # aligned, as O_DIRECT requires
    descriptor = os.open(volume.device, os.O_RDWR | os.O_DIRECT)
    try:
        begin = crossed = time.time()
        for number in range(_THRESHOLD + 1):
            crossed = time.time()
            os.pwritev(descriptor, [buffer], number * _BLOCK)
        certain = int(time.time()) == int(begin)

        def is_in_force() -> bool:
            os.pwritev(descriptor, [buffer], random.randrange(USED // _BLOCK) * _BLOCK)
            return volume.page.limits().write_ops == _LEFT

        enforced = wait_until(f"volume `{volume.id}` has no throttle", is_in_force, period=_PAUSE)
    finally:
        os.close(descriptor)
    return enforced - crossed if certain else None


def _wait_for(volume: ClusterVolume, limit: str, value: int) -> float:
    """The time at which the page of a volume had this limit."""
    complaint = f"the limit {limit} of volume `{volume.id}` is not {value}"
    return wait_until(complaint, lambda: getattr(volume.page.limits(), limit) == value)
