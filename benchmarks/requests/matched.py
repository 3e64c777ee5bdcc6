"""The cost of a matching policy: 1 MB GET and PUT through the filter ``noop``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from benchmarks.harness.blocks import Bench, Block, Work, of
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, SLUICE, compare
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, Trio
from benchmarks.harness.works import getting, make_container, put_all, putting

from sluice_core.testing import assignment

CONTAINER: Final = "matched"
SIZE: Final = 1_000_000
LIMIT: Final = 1.03
_COUNTED: Final = ("proxy", "objects")


def measure(trio: Trio, scale: Scale) -> list[Figure]:
    """Interleaved blocks, the same container through all three proxies."""
    client = trio.client(SLUICE)
    make_container(client, CONTAINER)
    trio.assign([assignment("matched.0", f"{ACCOUNT}/{CONTAINER}", keyword="noop", stage=500)])
    trio.check_in_force(CONTAINER, "noop")
    data = random.Random(3).randbytes(SIZE)
    paths = [f"{CONTAINER}/read-{number}" for number in range(20)]
    put_all(client, paths, data)
    bench = Bench(trio)
    rounds, count = scale.pick(4, 1), scale.pick(4, 2)
    works: dict[str, Work] = {"GET": getting(paths, SIZE), "PUT": putting(CONTAINER, 20, data)}
    blocks: dict[str, list[dict[str, Block]]] = {operation: [] for operation in works}
    for number in range(rounds):
        say(f"matched: round {number + 1} of {rounds}")
        if number:
            trio.restart(INSTANCES if number % 2 else INSTANCES[::-1])
            trio.settle()
        for operation, work in works.items():
            same = dict.fromkeys(INSTANCES, work)
            bench.warm(same, 10)
            blocks[operation] += bench.cycles(same, count, scale.pick(60, 15), first=number * count)
    return [figure for operation, cycles in blocks.items() for figure in _figures(operation, cycles)]


def _figures(operation: str, cycles: list[dict[str, Block]]) -> Iterator[Figure]:
    compared = {
        "latency": ("median latency", compare(of(cycles, lambda block: block.latency))),
        "CPU": ("CPU of proxy and object servers", compare(of(cycles, lambda block: block.cpu_per_request(*_COUNTED)))),
    }
    for name, (what, one) in compared.items():
        yield at_most(
            f"noop {operation} {name}",
            f"1 MB {operation}, matched by `noop`: {what}, × plain",
            one.ratio,
            LIMIT,
            "×",
            f"{one.beside()}; {one.milliseconds(2)}",
            plain_to_plain=one.twins,
            band=one.band,
        )
