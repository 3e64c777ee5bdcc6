"""Pipelines beside plain Swift: compression with encryption on GET, and compression of incompressible data."""

from __future__ import annotations

import random
from typing import Final

from benchmarks.harness.blocks import Bench, Works, of
from benchmarks.harness.corpus import log_corpus
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, SLUICE, compare
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, Trio
from benchmarks.harness.works import expect, getting, make_container, put_all, putting

from sluice_core.errors import PeerError
from sluice_core.testing import assignment

SEALED, DENSE, LOOSE = "sealed", "dense", "loose-too"
GET_SIZE: Final = 1_000_000
GET_LIMIT: Final = 1.35
PUT_SIZE: Final = 10_000_000
PUT_LIMIT: Final = 1.02


def measure(trio: Trio, scale: Scale) -> list[Figure]:
    """The GET, then the PUT."""
    client = trio.client("plain")
    for container in (SEALED, DENSE, LOOSE):
        make_container(client, container)
    target = f"{ACCOUNT}/{SEALED}"
    trio.assign(
        [
            assignment("sealed.0", target, keyword="compression", params={"engine": "zstd"}, stage=300),
            assignment("sealed.1", target, keyword="encryption", stage=500),
            assignment("dense.0", f"{ACCOUNT}/{DENSE}", keyword="compression", params={"engine": "zstd"}, stage=300),
        ]
    )
    trio.check_in_force(SEALED, "compression", "encryption")
    trio.check_in_force(DENSE, "compression")
    bench = Bench(trio)
    return [_sealed_get(bench, scale), *_dense_put(bench, scale)]


def _sealed_get(bench: Bench, scale: Scale) -> Figure:
    say("pipelines: GET of 1 MB, compressed and encrypted")
    corpus = log_corpus(GET_SIZE)
    names = range(8)
    places = {name: SEALED if name == SLUICE else LOOSE for name in INSTANCES}
    for container in (SEALED, LOOSE):
        put_all(bench.trio.client(SLUICE), [f"{container}/get-{number}" for number in names], corpus)
    answer = bench.trio.client(SLUICE).request("GET", f"{SEALED}/get-0")
    expect(answer, 200, GET_SIZE)
    if answer.body != corpus:
        raise PeerError("what was downloaded is not what was uploaded")
    if bench.trio.client("plain").request("GET", f"{SEALED}/get-0").body == corpus:
        raise PeerError("the object is not stored in another form, so nothing would be measured")
    works: Works = {
        name: getting([f"{place}/get-{number}" for number in names], GET_SIZE) for name, place in places.items()
    }
    bench.warm(works, 10)
    cycles = bench.cycles(works, scale.pick(24, 4), scale.pick(40, 10))
    compared = compare(of(cycles, lambda block: block.latency))
    cpu = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects")))
    note = f"{compared.milliseconds()}; {compared.beside()}; CPU of proxy and object servers {cpu.ratio:.2f} ×"
    what = "1 MB of logs, zstd and AES-256-GCM in one pipeline: time × plain"
    return at_most("pipeline GET", what, compared.ratio, GET_LIMIT, "×", note)


def _dense_put(bench: Bench, scale: Scale) -> list[Figure]:
    say("pipelines: PUT of 10 MB that do not shrink")
    data = random.Random(8).randbytes(PUT_SIZE)
    works: Works = {name: putting(DENSE if name == SLUICE else LOOSE, 4, data) for name in INSTANCES}
    bench.warm(works, 4)
    cycles = bench.cycles(works, scale.pick(40, 4), 4)
    compared = compare(of(cycles, lambda block: block.latency))
    cpu = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects")))
    note = f"{compared.milliseconds()}; {compared.beside()}; CPU of proxy and object servers {cpu.ratio:.3f} ×"
    what = "10 MB of random bytes under compression: time × plain"
    return [at_most("incompressible PUT", what, compared.ratio, PUT_LIMIT, "×", note)]
