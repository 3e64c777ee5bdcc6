"""A mount whose target size changes while a trace of reads goes on, its files from the network: figure 7 of the paper.

    python -m benchmarks --only motif_mount_trace

2,000 files have the motif ``url`` of as many pages, which a server on the loopback gives after 50 ms.  One client reads
them one by one, by a synthetic trace with strong locality (:mod:`benchmarks.motifs.traces`), since the paper's traces
are not to be had: 10 in a second, or fewer while it waits.  The target size is more than there is at first, 20 % of the
bytes in the second part, 0 in the third, and more than there is in the fourth, while spare space is filled; the last
part begins when that is over.

The paper has no bound on re-expansions.  So the mount has none here (``reexpansion_share = inf``), and keeps a target
of 0 although each read then waits for the network.

What the mount holds, and hits and misses, are what its attribute says each half second; times are the client's.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.figures import Figure, at_most, reported
from benchmarks.harness.scale import Scale, say
from benchmarks.motifs.file_system import serving
from benchmarks.motifs.trace_replay import LOCALITY, OFF, PARTS, SETTLED, SLOWER, Part, Sample, content, settled
from benchmarks.motifs.traces import Trace, make_trace

from sluice_core.errors import PeerError

#: Seconds until the server answers.
LATENCY: Final = 0.05
ITEMS: Final = 2000
OPENS: Final = 2000
#: Reads in a second, at most; the interval leaves time for the HEAD of a contraction.
PACE: Final = 10.0
#: Minimum seconds of a part.
LASTS: Final = 35.0
#: Seconds until a mount must know its files, or must have filled spare space.
PATIENCE: Final = 300.0
_EVERY: Final = 0.5
_SEED: Final = 1
_SPACE: Final = "user.sluice.space"


def measure(scale: Scale) -> list[Figure]:
    """Sizes after each change, and the times of reads in each part; a quick run has few files and reads."""
    trace = _trace(scale.pick(ITEMS, 60), scale.pick(OPENS, 100))
    folder = scale.folder / "motif-mount-trace"
    source, mount = folder / "source", folder / "mount"
    for one in (source, mount):
        one.mkdir(parents=True)
    config = folder / "motif-fs.conf"
    config.write_text("[motif-fs]\nreexpansion_share = inf\nmotif_url_hosts = 127.0.0.1\n", encoding="utf-8")
    command = ["sluice_motifs_fs", "mount", str(source), str(mount), "--config", str(config)]
    with _server(trace) as url, serving(command, mount, folder / "log"):
        for slot, size in enumerate(trace.sizes):
            (mount / f"{slot}").write_bytes(content(slot, size))
            described = json.dumps({"template": "url", "params": {"source": f"{url}/{slot}"}})
            os.setxattr(mount / f"{slot}", "user.sluice.motif", described.encode())
        say(f"motif_mount_trace: {len(trace.sizes)} files, {sum(trace.sizes)} bytes, {len(trace.opens)} reads")
        parts, samples = _replay(mount, trace, scale.pick(1, 0) * LASTS)
    return figures(parts, samples, trace)


def _trace(items: int, opens: int) -> Trace:
    """Opens of some of the files; all of them exist."""
    drawn = random.Random(_SEED)
    sizes = [int(drawn.lognormvariate(math.log(LOCALITY.median), LOCALITY.sigma)) + 1 for _ in range(items)]
    return Trace([slot % items for slot in make_trace(LOCALITY, opens, _SEED).opens], sizes)


@contextlib.contextmanager
def _server(trace: Trace) -> Iterator[str]:
    """The pages of the files; their URL without the number."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(LATENCY)
            slot = int(self.path.strip("/"))
            self.send_response(200)
            self.send_header("Content-Length", f"{trace.sizes[slot]}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content(slot, trace.sizes[slot]))

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _replay(mount: Path, trace: Trace, lasts: float) -> tuple[list[Part], list[Sample]]:
    total = sum(trace.sizes)
    _wait_until(mount, "items", len(trace.sizes))
    share = len(trace.opens) // len(PARTS)
    parts = []
    with _sampled(mount) as (clock, samples):
        for number, (name, percent) in enumerate(PARTS):
            target = 10 * total if percent is None else total * percent // 100
            if number == len(PARTS) - 1:
                _wait_until(mount, "contracted_items", 0)
            else:
                os.setxattr(mount, _SPACE, json.dumps({"target_size": target}).encode())
            part = Part(name, target, clock())
            for slot in trace.opens[number * share : (number + 1) * share]:
                began = clock()
                if (mount / f"{slot}").read_bytes() != content(slot, trace.sizes[slot]):
                    raise PeerError(f"file {slot} has other bytes than it had")
                part.times.append((began, clock() - began))
                time.sleep(max(0.0, began + 1 / PACE - clock()))
            time.sleep(max(0.0, part.began + lasts - clock()))
            part.ended = clock()
            parts.append(part)
            used = samples[-1].used
            say(f"motif_mount_trace: target {name}: {1000 * part.median():.1f} ms, {used} of {total} bytes")
    return parts, samples


def _wait_until(mount: Path, field: str, value: int) -> None:
    end = time.monotonic() + PATIENCE
    while json.loads(os.getxattr(mount, _SPACE))[field] != value:
        if time.monotonic() > end:
            raise PeerError(f"`{field}` of the mount is not {value} after {PATIENCE:g} s")
        time.sleep(_EVERY)


@contextlib.contextmanager
def _sampled(mount: Path) -> Iterator[tuple[Any, list[Sample]]]:
    """The clock of the run, and samples of the space during it."""
    origin = time.monotonic()
    samples: list[Sample] = []
    over = threading.Event()

    def clock() -> float:
        return time.monotonic() - origin

    def watch() -> None:
        while not over.is_set():
            space = json.loads(os.getxattr(mount, _SPACE))
            used, contracted = space["used"], space["contracted_items"]
            samples.append(Sample(clock(), used, contracted, space["hits"], space["misses"], space["state"]))
            over.wait(_EVERY)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield clock, samples
    finally:
        over.set()
        thread.join()


def hit_rate(part: Part, samples: Sequence[Sample]) -> float:
    """Percent of the opens of a part that were hits; the last sample before its begin is its start."""
    before = [one for one in samples if one.at <= part.began] or samples[:1]
    during = [one for one in samples if one.at <= part.ended] or samples[:1]
    hits, misses = during[-1].hits - before[-1].hits, during[-1].misses - before[-1].misses
    return 100 * hits / max(1, hits + misses)


def figures(parts: Sequence[Part], samples: Sequence[Sample], trace: Trace) -> list[Figure]:
    """The content of the plot as numbers."""
    total = sum(trace.sizes)
    what = (
        f"{len(trace.sizes):,} files of {total / 1e6:.0f} MB in a mount, from a server that answers after "
        f"{1000 * LATENCY:g} ms, {len(trace.opens):,} reads by a synthetic trace"
    )
    rates = {one.name: hit_rate(one, samples) for one in parts}
    means = {one.name: statistics.fmean(seconds for _, seconds in one.times) for one in parts}
    beside = "; ".join(f"target {one.name}: {1000 * one.median():.1f} ms, {rates[one.name]:.0f} %" for one in parts)
    details = {
        "locality": asdict(LOCALITY),
        "bytes": total,
        "parts": [one.described() for one in parts],
        "samples": [asdict(one) for one in samples],
    }
    fifth, none = (settled(one, samples) for one in parts[1:3])
    off = abs(fifth.used - parts[1].target) / parts[1].target
    row = f"{what}; bytes {SETTLED:g} s after target 20 %, off it"
    row_of_none = f"{what}; bytes {SETTLED:g} s after target 0, of all"
    row_of_waits = f"{what}; mean time at target 0"
    ratio = parts[-1].median() / parts[0].median()
    name = "motif mount trace"
    return [
        at_most(name, row, 100 * off, 100 * OFF, "%", f"{fifth.used} of {parts[1].target}, {fifth.state}", 2),
        at_most(name, row_of_none, 100 * none.used / total, 100 * OFF, "%", none.state, 2),
        reported(name, row_of_waits, 1000 * means[parts[2].name], "ms", beside, 1),
        at_most(
            name, f"{what}; median time after the limits × that before them", ratio, SLOWER, "×", beside, 2, **details
        ),
    ]
