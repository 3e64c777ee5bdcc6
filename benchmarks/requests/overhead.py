"""The cost of Sluice without a matching policy: 10 KB GET and PUT with 100,000 assignments in the snapshot."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from benchmarks.harness.blocks import Bench, Block, Work, of
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, ORDERS, PLAIN, SLUICE, Comparison, compare
from benchmarks.harness.population import strangers
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import Trio
from benchmarks.harness.works import getting, make_container, put_all, putting

CONTAINER: Final = "small"
SIZE: Final = 10_000
OBJECTS: Final = 100
ASSIGNMENTS: Final = 100_000
LIMIT: Final = 1.03
#: Operation, concurrency → blocks by instance, cycle after cycle.
Samples = dict[tuple[str, int], list[dict[str, Block]]]


def prepare(trio: Trio) -> None:
    """The assignments of other targets and the objects to read."""
    say(f"writing {ASSIGNMENTS} assignments through Redis and the agent into the snapshot")
    trio.assign(strangers(ASSIGNMENTS))
    client = trio.client(PLAIN)
    make_container(client, CONTAINER)
    data = random.Random(1).randbytes(SIZE)
    put_all(client, [f"{CONTAINER}/read-{number}" for number in range(OBJECTS)], data)


def measure(trio: Trio, scale: Scale) -> list[Figure]:
    """Rounds of restarts; in each, interleaved blocks of GETs and PUTs, one and four at a time."""
    bench = Bench(trio)
    samples: Samples = defaultdict(list)
    data = random.Random(2).randbytes(SIZE)
    works: dict[str, Work] = {
        "GET": getting([f"{CONTAINER}/read-{number}" for number in range(OBJECTS)], SIZE),
        "PUT": putting(CONTAINER, 500, data),
    }
    rounds, cycles = scale.pick(6, 1), scale.pick(3, 1)
    count = scale.pick(250, 60)
    for number in range(rounds):
        order = ORDERS[number % len(ORDERS)]
        say(f"overhead: round {number + 1} of {rounds}, started in the order {', '.join(order)}")
        trio.restart(order)
        trio.settle()
        for operation, work in works.items():
            same = dict.fromkeys(INSTANCES, work)
            bench.warm(same, 40)
            for concurrency in (1, 4):
                samples[operation, concurrency] += bench.cycles(same, cycles, count, concurrency, number * cycles)
    return figures(samples)


def figures(samples: Samples) -> list[Figure]:
    """CPU from all blocks of an operation; latency and rate by concurrency."""
    found = []
    for operation in dict.fromkeys(operation for operation, _ in samples):
        cycles = [cycle for (name, _), blocks in samples.items() if name == operation for cycle in blocks]
        found.append(_cpu_figure(operation, cycles))
    for (operation, concurrency), cycles in samples.items():
        latency = compare(of(cycles, lambda block: block.latency))
        rate = compare(of(cycles, lambda block: block.rate))
        what = f"10 KB {operation}, {concurrency} at a time"
        found.append(_band_figure(f"latency {operation} c{concurrency}", f"{what}: median latency", latency))
        found.append(_band_figure(f"rate {operation} c{concurrency}", f"{what}: requests/s", rate, rate=True))
    return found


def _cpu_figure(operation: str, cycles: list[dict[str, Block]]) -> Figure:
    compared = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects")))
    proxy = compare(of(cycles, lambda block: block.cpu_per_request("proxy")))
    below = _milliseconds(cycles, "container")
    return at_most(
        f"overhead {operation}",
        f"10 KB {operation}, no policy matches, {ASSIGNMENTS} assignments: CPU of proxy and object servers, × plain",
        compared.ratio,
        LIMIT,
        "×",
        f"{compared.beside()}; {compared.medians[SLUICE] * 1e3:.2f} ms against {compared.medians[PLAIN] * 1e3:.2f}"
        f" and {compared.medians['twin'] * 1e3:.2f}; proxy alone {proxy.ratio:.3f} ×",
        pooled=_pooled(cycles),
        requests={name: sum(len(cycle[name].latencies) for cycle in cycles) for name in INSTANCES},
        proxy_ms={name: value * 1e3 for name, value in proxy.medians.items()},
        container_server_ms=below,
        plain_to_plain=compared.twins,
        cycles_ms=[
            {name: block.cpu_per_request("proxy", "objects") * 1e3 for name, block in cycle.items()} for cycle in cycles
        ],
    )


def _pooled(cycles: list[dict[str, Block]]) -> float:
    """The ratio of all CPU seconds, which outliers affect."""
    used = {name: sum(cycle[name].cpu["proxy"] + cycle[name].cpu["objects"] for cycle in cycles) for name in INSTANCES}
    return used[SLUICE] / ((used[PLAIN] + used["twin"]) / 2)


def _milliseconds(cycles: list[dict[str, Block]], group: str) -> Mapping[str, float]:
    def median(name: str) -> float:
        return statistics.median(cycle[name].cpu_per_request(group) for cycle in cycles) * 1e3

    return {name: median(name) for name in INSTANCES}


def _band_figure(name: str, what: str, compared: Comparison, rate: bool = False) -> Figure:
    """A latency, or a rate: whether it is worse than two plain instances are to each other."""
    scale, unit = (1.0, "/s") if rate else (1e3, "ms")
    medians = " / ".join(f"{compared.medians[one] * scale:.2f}" for one in INSTANCES)
    return Figure(
        name,
        f"{what}, × plain",
        compared.ratio,
        f"{compared.ratio:.3f} ×",
        compared.band_text(rate),
        compared.in_band(rate),
        f"{medians} {unit} (sluice/plain/plain), plain/plain {compared.twins:.3f}",
        {"cycles": compared.cycles, "band": compared.band, "medians": dict(compared.medians)},
    )
