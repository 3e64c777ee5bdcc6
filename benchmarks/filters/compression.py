"""Compression of logs with zstd: 10 MB PUT and GET, and a small range out of 100 MB."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.harness.blocks import Bench, Block, Works, of
from benchmarks.harness.corpus import log_corpus
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, PLAIN, SLUICE, compare
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, Trio
from benchmarks.harness.works import expect, getting, make_container, put_all, putting, ranging

from sluice_aio.cluster.disks import stored_sizes
from sluice_core.errors import PeerError
from sluice_core.testing import assignment
from sluice_filters.api import Hint
from sluice_filters.compression.compression import Compression

PACKED, LOOSE = "packed", "loose"
SIZE: Final = 10_000_000
LARGE: Final = 100_000_000
RANGE: Final = 65_536
REPLICAS: Final = 3
#: The three instances and their containers.
_PLACES: Final[Mapping[str, str]] = {name: PACKED if name == SLUICE else LOOSE for name in INSTANCES}


def measure(trio: Trio, scale: Scale) -> list[Figure]:
    """PUT, the stored bytes, GET and ranges."""
    client = trio.client(SLUICE)
    for container in (PACKED, LOOSE):
        make_container(client, container)
    parameters = {"engine": "zstd"}
    trio.assign([assignment("packed.0", f"{ACCOUNT}/{PACKED}", keyword="compression", params=parameters, stage=300)])
    trio.check_in_force(PACKED, "compression")
    say("compression: making the corpus")
    corpus = log_corpus(SIZE)
    bench = Bench(trio)
    return [
        *_upload(bench, corpus, scale),
        _stored(trio),
        _download(bench, corpus, scale),
        _ranges(bench, corpus, scale),
    ]


def _upload(bench: Bench, corpus: bytes, scale: Scale) -> list[Figure]:
    works: Works = {name: putting(place, 4, corpus, "text/plain") for name, place in _PLACES.items()}
    say("compression: PUT of 10 MB")
    bench.warm(works, 4)
    cycles = bench.cycles(works, scale.pick(24, 4), 4)
    compared = compare(of(cycles, lambda block: block.latency))
    cpu = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects")))
    what = "10 MB of logs, zstd, three replicas"
    return [
        at_most(
            "compression PUT",
            f"{what}: time × plain",
            compared.ratio,
            1.3,
            "×",
            f"{compared.milliseconds()}; {compared.beside()}",
        ),
        Figure(
            "compression PUT CPU",
            f"{what}: CPU of proxy and object servers × plain",
            cpu.ratio,
            f"{cpu.ratio:.3f} ×",
            beside=_where_time_goes(corpus, cycles),
        ),
    ]


def _where_time_goes(corpus: bytes, cycles: list[dict[str, Block]]) -> str:
    """CPU per PUT of each process, beside the CPU of its parts alone on this machine."""

    def median(name: str, group: str) -> float:
        return compare(of(cycles, lambda block: block.cpu_per_request(group))).medians[name] * 1e3

    encoding = _best(lambda: _encode(corpus)) * 1e3
    hashing = _best(lambda: hashlib.md5(corpus, usedforsecurity=False)) * 1e3
    servers = ", ".join(
        f"{group} {median(SLUICE, group):.0f} ms, plain {median(PLAIN, group):.0f} ms" for group in ("proxy", "objects")
    )
    return (
        f"{servers}; alone on a core: encoding {encoding:.0f} ms and the MD5 of the plain bytes {hashing:.0f} ms,"
        " both in an I/O thread beside the transfer"
    )


def _encode(corpus: bytes) -> int:
    encoder = Compression({"engine": "zstd"}).encoder(Hint(len(corpus), "text/plain", "corpus.log"))
    pieces = [encoder.feed(corpus[first : first + 65536]) for first in range(0, len(corpus), 65536)]
    return sum(map(len, pieces)) + len(encoder.finish())


def _best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of five runs."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def _stored(trio: Trio) -> Figure:
    sizes = stored_sizes(trio.cluster.device_folders, f"{ACCOUNT}/{PACKED}")
    files = [size for replicas in sizes.values() for size in replicas]
    if not files or any(len(replicas) != REPLICAS for replicas in sizes.values()):
        raise PeerError(f"expected {REPLICAS} replicas of each object in `{PACKED}`, found `{sizes}`")
    ratio = sum(files) / (len(files) * SIZE)
    what = "10 MB of logs, zstd: bytes on the disks × plain"
    return at_most("compression stored", what, ratio, 0.35, "×", f"{len(files)} files, {REPLICAS} replicas")


def _download(bench: Bench, corpus: bytes, scale: Scale) -> Figure:
    say("compression: GET of 10 MB")
    client = bench.trio.client(SLUICE)
    answer = client.request("GET", f"{PACKED}/put-0")
    expect(answer, 200, SIZE)
    if answer.body != corpus:
        raise PeerError("what was downloaded is not what was uploaded")
    works: Works = {name: getting([f"{place}/put-0", f"{place}/put-1"], SIZE) for name, place in _PLACES.items()}
    bench.warm(works, 2)
    cycles = bench.cycles(works, scale.pick(20, 4), 8)
    compared = compare(of(cycles, lambda block: block.latency))
    cpu = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects")))
    note = f"{compared.milliseconds()}; {compared.beside()}; CPU of proxy and object servers {cpu.ratio:.2f} ×"
    return at_most("compression GET", "10 MB of logs, zstd: time × plain", compared.ratio, 1.2, "×", note)


def _ranges(bench: Bench, corpus: bytes, scale: Scale) -> Figure:
    say("compression: 64 KB out of 100 MB")
    client = bench.trio.client(SLUICE)
    large = (
        b"".join(log_corpus(SIZE, seed) for seed in range(10, 10 + LARGE // SIZE)) if not scale.quick else corpus * 10
    )
    for container in (PACKED, LOOSE):
        put_all(client, [f"{container}/large"], large)
    dice = random.Random(4)
    starts = [dice.randrange(LARGE - RANGE) for _ in range(1000)]
    first = starts[0]
    answer = client.request("GET", f"{PACKED}/large", range=f"bytes={first}-{first + RANGE - 1}")
    if answer.body != large[first : first + RANGE]:
        raise PeerError("a range of the compressed object is not that range of the plain one")
    works: Works = {name: ranging(f"{place}/large", starts, RANGE) for name, place in _PLACES.items()}
    bench.warm(works, 5)
    cycles = bench.cycles(works, scale.pick(20, 4), scale.pick(40, 20))
    compared = compare(of(cycles, lambda block: block.latency))
    note = f"{compared.milliseconds()}; {compared.beside()}"
    what = "64 KB at a random place of 100 MB of logs, zstd: time × plain"
    return at_most("compression range", what, compared.ratio, 2.0, "×", note)
