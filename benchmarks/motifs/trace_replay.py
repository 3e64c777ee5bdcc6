"""A container whose target size changes while a trace of reads goes on, through Swift: as figure 7 of the paper.

    python -m benchmarks --only motif_trace

2,000 objects are made of as many others (``derive``, by the filter ``xor``); one client reads them one by one, by a
trace with locality (:mod:`benchmarks.motifs.traces`), 20 in a second, or fewer while it waits.  A policy says the
target size: more than there is at first, 20 % of the bytes in the second part, 0 in the third, and more than there is
in the fourth, while spare space is filled in the background.  The last part begins when that is over.  Each part goes
on, without reads, until it has lasted 35 seconds, so that the size 30 seconds after a change is seen.

The trace has strong locality, as the paper's: 99 % of reads repeat one of about the last 30.  How many objects a node
contracts within 30 seconds depends on its CPU; so the same is done once more with 800 objects.

A target of 0 is below what is being read, so that keeping it would make bytes again all the time: contraction stops
short of that, and the space says ``thrashing``.  How many bytes are stored then has no target.

What the space holds, and hits and misses, are what ``GET /spaces`` says each half second; times are the client's.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks.harness.figures import Figure, at_most, reported
from benchmarks.harness.scale import Scale, say
from benchmarks.motifs.traces import Locality, Trace, make_trace

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_client.errors import ClientError
from sluice_core.errors import PeerError
from sluice_filters.api import Hint
from sluice_filters.basic.xor import Xor

LOCALITY: Final = Locality("strong", repeats=0.99, items=2000, median=16 << 10, sigma=1.0)
#: Objects of the second, smaller run, and its reads.
FEWER: Final = (800, 2_500)
#: Percent of the bytes of all objects that are the target of a part; None: above all bytes.
PARTS: Final = (("unrestricted", None), ("20 %", 20), ("0", 0), ("filled", None), ("unrestricted again", None))
#: Reads in a second, at most.
PACE: Final = 20.0
#: Seconds until spare space must be filled.
FILLS: Final = 600.0
#: Minimum seconds of a part, and the time after which its size is compared with its target.
LASTS: Final = 35.0
SETTLED: Final = 30.0
#: Allowed distance of the size from its target then, and allowed additional time of the last part's reads.
OFF: Final = 0.02
SLOWER: Final = 1.2
_EVERY: Final = 0.5
_USER: Final = "test:tester"
_ACCOUNT: Final = "AUTH_test"
_GOAL: Final = "items"
_SOURCE: Final = "sources"
_KEY: Final = 7
_PATIENCE: Final = 120.0
_SEED: Final = 1


@dataclass(slots=True)
class Part:
    """The reads under one target: the begin of each, in seconds of the run, and its duration."""

    name: str
    target: int
    began: float
    times: list[tuple[float, float]] = field(default_factory=list)
    ended: float = 0.0

    def median(self) -> float:
        """The median time of its reads, in seconds."""
        return statistics.median(seconds for _, seconds in self.times)

    def described(self) -> dict[str, Any]:
        """Plain data: ``reads`` are pairs of seconds of the run and milliseconds."""
        reads = [[round(at, 3), round(1000 * taken, 2)] for at, taken in self.times]
        return {"name": self.name, "target": self.target, "began": self.began, "ended": self.ended, "reads": reads}


@dataclass(frozen=True, slots=True)
class Sample:
    """The space at one moment: seconds of the run, bytes, opens since the beginning."""

    at: float
    used: int
    contracted: int
    hits: int
    misses: int
    state: str


def measure(scale: Scale) -> list[Figure]:
    """Sizes after each change, and the times of reads at the end; a quick run has few objects and reads."""
    if scale.quick:
        return _measure(scale, 100, 600)
    return [*_measure(scale, LOCALITY.items, 5_000), *_measure(scale, *FEWER)]


def _measure(scale: Scale, items: int, opens: int) -> list[Figure]:
    trace = _trace(items, opens)
    layout = Layout.free(scale.folder / f"motif-trace-{items}")
    with (
        Cluster(layout, DEFAULT | {"motifs"}) as cluster,
        Client(cluster.api_url, cluster.token) as api,
        contextlib.closing(SwiftHttp(cluster.proxy_url).login(_USER, USERS[_USER][0])) as swift,
    ):
        say(f"motif_trace: {items} objects, {sum(trace.sizes)} bytes, {opens} reads")
        fill(swift, trace)
        parts, samples = _replay(api, swift, trace)
    return _figures(parts, samples, items, opens, sum(trace.sizes))


def _trace(items: int, opens: int) -> Trace:
    """Opens of some of the objects; all of them exist."""
    drawn = random.Random(_SEED)
    sizes = [int(drawn.lognormvariate(math.log(LOCALITY.median), LOCALITY.sigma)) + 1 for _ in range(items)]
    return Trace([slot % items for slot in make_trace(LOCALITY, opens, _SEED).opens], sizes)


def content(slot: int, size: int) -> bytes:
    """The bytes of a source."""
    line = b"%d: a line of a log, and what it says\n" % slot
    return (line * (size // len(line) + 1))[:size]


def fill(swift: SwiftHttp, trace: Trace) -> None:
    """Store sources, and the objects derived from them with their motif."""
    for container in (_SOURCE, _GOAL):
        _put(swift, container)
    for slot, size in enumerate(trace.sizes):
        source = content(slot, size)
        params = {"of": f"{_ACCOUNT}/{_SOURCE}/{slot}", "filter": Xor.info.keyword, "options": f"key={_KEY}"}
        motif = json.dumps([{"template": "derive", "params": params}])
        _put(swift, f"{_SOURCE}/{slot}", source)
        _put(swift, f"{_GOAL}/{slot}", made_of(source), x_object_motif=motif)


def made_of(source: bytes) -> bytes:
    """The output of the motif for a source."""
    stream = Xor({"key": _KEY}).encoder(Hint())
    return stream.feed(source) + stream.finish()


def _put(swift: SwiftHttp, path: str, body: bytes = b"", **headers: str) -> None:
    answer = swift.request("PUT", path, body, **headers)
    if answer.status not in (201, 202):
        raise PeerError(f"PUT {path}: {answer.status} {answer.body[:200]!r}")


def _replay(api: Client, swift: SwiftHttp, trace: Trace) -> tuple[list[Part], list[Sample]]:
    total = sum(trace.sizes)
    targets = [10 * total if percent is None else total * percent // 100 for _, percent in PARTS]
    policy = api.create_policy(_sentence(targets[0]), wait=20)["id"]
    _wait_until_known(api, len(trace.sizes))
    share = len(trace.opens) // len(PARTS)
    parts = []
    with _sampled(api) as (clock, samples):
        for number, ((name, _), target) in enumerate(zip(PARTS, targets, strict=True)):
            if number == len(PARTS) - 1:
                _wait_until_filled(api)
            elif number:
                api.update_policy(policy, {"policy": _sentence(target)}, wait=20)
            part = Part(name, target, clock())
            for slot in trace.opens[number * share : (number + 1) * share]:
                began = clock()
                part.times.append((began, _read(swift, slot, trace.sizes[slot])))
                time.sleep(max(0.0, began + 1 / PACE - clock()))
            time.sleep(max(0.0, part.began + LASTS - clock()))
            part.ended = clock()
            parts.append(part)
            say(f"motif_trace: target {name}: {1000 * part.median():.1f} ms, {samples[-1].used} of {total} bytes")
    return parts, samples


def _sentence(target: int) -> str:
    return f"FOR CONTAINER {_ACCOUNT}/{_GOAL} DO SET elasticity WITH target_size={target}"


def _read(swift: SwiftHttp, slot: int, size: int) -> float:
    began = time.perf_counter()
    answer = swift.request("GET", f"{_GOAL}/{slot}")
    seconds = time.perf_counter() - began
    if answer.status != 200 or answer.body != made_of(content(slot, size)):
        raise PeerError(f"GET {_GOAL}/{slot}: {answer.status}, {len(answer.body)} bytes, expected {size}")
    return seconds


def _wait_until_known(api: Client, items: int) -> None:
    """Wait until the daemon knows the space, and all of its objects."""
    end = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(ClientError):
            space = api.space(f"{_ACCOUNT}/{_GOAL}")
            if space["objects"] + space["contracted_objects"] >= items:
                return
        if time.monotonic() > end:
            raise PeerError(f"the space does not have its {items} objects after {_PATIENCE:g} s")
        time.sleep(_EVERY)


def _wait_until_filled(api: Client) -> None:
    """Wait until no object is expanded in the background."""
    end = time.monotonic() + FILLS
    while time.monotonic() < end:
        with contextlib.suppress(ClientError):
            if api.space(f"{_ACCOUNT}/{_GOAL}")["contracted_objects"] == 0:
                return
        time.sleep(_EVERY)
    raise PeerError(f"objects are contracted {FILLS:g} s after there was space for them")


@contextlib.contextmanager
def _sampled(api: Client) -> Iterator[tuple[Any, list[Sample]]]:
    """The clock of the run, and samples of the space during it."""
    origin = time.monotonic()
    samples: list[Sample] = []
    over = threading.Event()

    def clock() -> float:
        return time.monotonic() - origin

    def watch() -> None:
        while not over.is_set():
            with contextlib.suppress(ClientError):
                space = api.space(f"{_ACCOUNT}/{_GOAL}")
                used, contracted = space["used"], space["contracted_objects"]
                samples.append(Sample(clock(), used, contracted, space["hits"], space["misses"], space["state"]))
            over.wait(_EVERY)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield clock, samples
    finally:
        over.set()
        thread.join()


def settled(part: Part, samples: Sequence[Sample]) -> Sample:
    """The space at the time at which a part should be at its target."""
    return next((one for one in samples if one.at >= part.began + SETTLED), samples[-1])


def contraction_rate(part: Part, samples: Sequence[Sample]) -> float:
    """Objects contracted a second, from the first sample of a part with more of them to the first at its target."""
    during = [one for one in samples if part.began <= one.at <= part.ended]
    growing = [one for one in during if one.contracted > during[0].contracted]
    if not growing:
        return 0.0
    first = growing[0]
    last = next((one for one in growing if one.used <= part.target * (1 + OFF)), growing[-1])
    return (last.contracted - first.contracted) / (last.at - first.at) if last is not first else 0.0


def _figures(parts: Sequence[Part], samples: Sequence[Sample], items: int, opens: int, total: int) -> list[Figure]:
    what = f"{items:,} objects of {total / 1e6:.0f} MB through Swift, {opens:,} reads"
    beside = "; ".join(f"target {one.name}: {1000 * one.median():.1f} ms" for one in parts)
    details = {
        "locality": asdict(LOCALITY),
        "bytes": total,
        "parts": [one.described() for one in parts],
        "samples": [asdict(one) for one in samples],
    }
    fifth, none = (settled(one, samples) for one in parts[1:3])
    off = abs(fifth.used - parts[1].target) / parts[1].target
    row = f"{what}; bytes {SETTLED:g} s after target 20 %, off it"
    kept = f"{fifth.used} of {parts[1].target}, {fifth.state}"
    row_of_none = f"{what}; bytes {SETTLED:g} s after target 0, of all"
    found = [
        at_most("motif trace", row, 100 * off, 100 * OFF, "%", kept, 2),
        reported("motif trace", row_of_none, 100 * none.used / total, "%", none.state, 2),
    ]
    rate = contraction_rate(parts[1], samples)
    found.append(reported("motif trace", f"{what}; contractions after target 20 %", rate, "objects/s", "", 1))
    ratio = parts[-1].median() / parts[0].median()
    row = f"{what}; median time after the limits × that before them"
    return [*found, at_most("motif trace", row, ratio, SLOWER, "×", beside, 2, **details)]
