"""Bandwidth on a live cluster: the rates of tenants, second by second, against their objectives.

    python -m benchmarks.bandwidth.objectives [--only ROW] [--quick] [--folder DIR] [--out DIR]

Rows run one after the other on clusters of their own, as root on loop devices with XFS and BFQ; each is measured where
clients are, per wall-clock second, and painted over time with the floors (``--out``).  *Mean error* is
the mean of |measured ÷ expected - 1| over all tenants and seconds, *worst second* its greatest value; ``floor + equal
spare`` is what is expected.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.bandwidth.plain import plain
from benchmarks.bandwidth.row import CONNECTIONS, FLOORS, MB, Row, await_all, faults, loading, promise, say_floor
from benchmarks.bandwidth.storm import storm
from benchmarks.harness.figures import Figure, Partly, table
from benchmarks.harness.machine import machine_facts
from benchmarks.harness.scale import Scale, say
from tests.support.cluster.bandwidth_cluster import Capacity, Terms
from tests.support.cluster.load import Load, totals

from sluice_client import ClientError
from sluice_core.errors import SluiceError

TENANTS: Final = tuple(FLOORS)
TOTAL: Final = 90 * MB
SETTLE: Final = 5
#: Connections of each other tenant beside one with ten times as many: the limit of two processors.
_BESIDE_NOISE: Final = {"proxy": 12, "storage_node": 24}
SIDES: Final = ("proxy", "storage_node")
_NAMES: Final = {"proxy": "proxies", "storage_node": "object servers"}
_WHAT: Final = {"GET": "Downloads (GET)", "PUT": "Uploads (PUT)"}
#: The proxies throttle uploads wherever the policy says.
_MIXED: Final = {"proxy": "proxies enforce", "storage_node": "object servers enforce GET, proxies PUT"}


@dataclass(frozen=True, slots=True)
class Errors:
    """Deviation of the measured from the expected rates."""

    mean: float
    worst: float
    total: float

    @classmethod
    def of(cls, measured: Mapping[str, Mapping[int, float]], expected: Mapping[str, float]) -> Errors:
        """From the rates of tenants in each second."""
        found = [abs(rate / expected[name] - 1) for name, rates in measured.items() for rate in rates.values()]
        mean = sum(statistics.mean(rates.values()) for rates in measured.values())
        return cls(statistics.mean(found), max(found), mean / sum(expected.values()))


def shares(floors: Mapping[str, float], total: float) -> dict[str, float]:
    """Floor and an equal part of the spare bandwidth."""
    spare = (total - sum(floors.values())) / len(floors)
    return {name: floor + spare for name, floor in floors.items()}


def _figures(name: str, what: str, errors: Errors, mean: float, worst: float | None, beside: str) -> list[Figure]:
    found = [
        Figure(
            name, f"{what}: mean error", errors.mean, f"{errors.mean:.2%}", f"≤ {mean:.0%}", errors.mean <= mean, beside
        )
    ]
    if worst is not None:
        reached = errors.worst <= worst
        found.append(
            Figure(
                name, f"{what}: worst second", errors.worst, f"{errors.worst:.2%}", f"≤ {worst:.0%}", reached, beside
            )
        )
    return found


def floors(row: Row, side: str = "proxy", method: str = "GET") -> list[Figure]:
    """Three tenants, floors 30/20/10 MB/s of 90 (halved for PUT)."""
    part = 1.0 if method == "GET" else 0.5
    wanted = {name: floor * part for name, floor in FLOORS.items()}
    expected = shares(wanted, TOTAL * part)
    # sockets take megabytes of an upload when it begins, and clients count them as sent: here each lasts longer than
    # the row
    connections, size = (CONNECTIONS[side], 2 << 20) if method == "GET" else (6, 1 << 30)
    what = method if method == "GET" else f"{method} of 1 GiB, longer than the row"
    with row.stage(Terms(side=side, sizes=(size,), fallocate=method == "GET")) as stage:
        for name in TENANTS:
            stage.fill(name, sizes=(2 << 20,))
        promise(stage, wanted, side, "get_bw" if method == "GET" else "put_bw")
        loads = {name: stage.load(name, connections, method, seed=at) for at, name in enumerate(TENANTS)}
        with loading(loads) as begin:
            first, last = begin + SETTLE, begin + SETTLE + row.seconds() - 1
            await_all(loads, last)
        rates = {name: load.rates(first, last) for name, load in loads.items()}
        errors = Errors.of(rates, expected)
        title = f"{_WHAT[method]} of three tenants with floors, {_NAMES[side]} enforce"
        row.keep(f"floors-{method}-{side}", title, loads, (begin, last), wanted, expected=expected)
        means = " / ".join(f"{statistics.mean(one.values()) / MB:.1f}" for one in rates.values())
        beside = f"{means} MB/s; total {errors.total:.3f} of what was expected; {faults(loads)}"
        return _figures(f"floors {method}", f"{what}, {_NAMES[side]} enforce", errors, 0.02, 0.10, beside)


def mixed(row: Row, side: str = "proxy") -> list[Figure]:
    """Objects of 64 KB to 64 MB, reads and writes at once."""
    get, put = 60 * MB, 20 * MB
    floors_get = {name: floor * get / TOTAL for name, floor in FLOORS.items()}
    floors_put = {name: floor * put / TOTAL for name, floor in FLOORS.items()}
    sizes = (64_000, 1 * MB, 8 * MB, 64 * MB)
    with row.stage(Terms(side=side, capacity=Capacity(get=get, put=put), sizes=sizes, objects=2)) as stage:
        loads: dict[str, Load] = {}
        for at, name in enumerate(TENANTS):
            stage.fill(name)
            floor = [f"get_bw={round(floors_get[name])}Bps", f"put_bw={round(floors_put[name])}Bps"]
            say_floor(stage, name, side, floor)
            loads[f"{name} GET"] = stage.load(name, CONNECTIONS[side] // 2, "GET", seed=at)
            loads[f"{name} PUT"] = stage.load(name, 6, "PUT", seed=at)
        expected = {f"{name} GET": rate for name, rate in shares(floors_get, get).items()}
        expected |= {f"{name} PUT": rate for name, rate in shares(floors_put, put).items()}
        with loading(loads) as begin:
            first, last = begin + SETTLE, begin + SETTLE + row.seconds() - 1
            await_all(loads, last)
        errors = Errors.of({name: load.rates(first, last) for name, load in loads.items()}, expected)
        lines = {f"{name} GET": rate for name, rate in floors_get.items()}
        lines |= {f"{name} PUT": rate for name, rate in floors_put.items()}
        title = f"Downloads and uploads of 64 KB to 64 MB at once, {_MIXED[side]}"
        row.keep(f"mixed-{side}", title, loads, (begin, last), lines, expected=expected)
        beside = f"worst second {errors.worst:.1%}, total {errors.total:.3f}; {faults(loads)}"
        return _figures("mixed", f"GET and PUT, 64 KB to 64 MB, {_MIXED[side]}", errors, 0.05, None, beside)


def unused(row: Row, side: str = "proxy") -> list[Figure]:
    """One of three stops: time until the others have its bandwidth."""
    left = {name: floor for name, floor in FLOORS.items() if name != "AUTH_t1"}
    expected = shares(left, TOTAL)
    with row.stage(Terms(side=side)) as stage:
        for name in TENANTS:
            stage.fill(name)
        promise(stage, FLOORS, side)
        loads = {name: stage.load(name, CONNECTIONS[side], seed=at) for at, name in enumerate(TENANTS)}
        with loading(loads) as begin:
            loads["AUTH_t2"].await_second(begin + SETTLE)
            loads["AUTH_t1"].stop()
            stopped = time.time()
            last = int(stopped) + row.seconds(20)
            for name in left:
                loads[name].await_second(last)
        rest = {name: loads[name] for name in left}
        together = totals(rest, int(stopped), last)
        full = [at for at, rate in together.items() if rate >= 0.97 * TOTAL]
        took = max(full[0] - stopped, 0.0) if full else float(last)
        settled = statistics.mean(rate for at, rate in together.items() if at >= stopped + 2) / TOTAL
        errors = Errors.of({name: load.rates(int(stopped) + 3, last) for name, load in rest.items()}, expected)
        title = f"Downloads: t1 stops, the others have its part, {_NAMES[side]} enforce"
        row.keep(f"unused-{side}", title, loads, (begin, last), FLOORS, marks={stopped: "t1 stops"})
    what = f"a floor is unused, {_NAMES[side]} enforce"
    beside = f"then mean error {errors.mean:.1%}; {faults(loads)}"
    return [
        Figure("unused", f"{what}: until a whole second is full", took, f"{took:.1f} s", "≤ 2 s", took <= 2, beside),
        Figure("unused", f"{what}: total", settled, f"{settled:.3f}", "≥ 0.97", settled >= 0.97, beside),
    ]


def noisy(row: Row, side: str = "proxy") -> list[Figure]:
    """One tenant, without a floor, with ten times the connections of the others."""
    wanted = {"AUTH_t1": 30 * MB, "AUTH_t2": 20 * MB}
    with row.stage(Terms(side=side)) as stage:
        for name in TENANTS:
            stage.fill(name)
        promise(stage, wanted, side)
        connections = _BESIDE_NOISE[side]
        loads = {name: stage.load(name, connections, seed=at) for at, name in enumerate(wanted)}
        loads["AUTH_t3"] = stage.load("AUTH_t3", connections * 10, seed=9)
        with loading(loads) as begin:
            first, last = begin + SETTLE, begin + SETTLE + row.seconds() - 1
            await_all(loads, last)
        below = [
            max(0.0, 1 - rate / floor)
            for name, floor in wanted.items()
            for rate in loads[name].rates(first, last).values()
        ]
        title = f"Downloads: t3, without a floor, has ten times the connections, {_NAMES[side]} enforce"
        row.keep(f"noisy-{side}", title, loads, (begin, last), wanted)
        worst = max(below)
        what = f"ten times the load, {_NAMES[side]} enforce: others below their floor, worst second"
        return [Figure("noisy", what, worst, f"{worst:.1%}", "≤ 5 %", worst <= 0.05, faults(loads))]


def proxy(row: Row, side: str = "proxy") -> list[Figure]:
    """Three equal tenants; one of the two proxies is killed and restarted."""
    each = 20 * MB
    with row.stage(Terms(side=side)) as stage:
        for name in TENANTS:
            stage.fill(name)
        promise(stage, dict.fromkeys(TENANTS, each), side)
        loads = {name: stage.load(name, CONNECTIONS[side], seed=at) for at, name in enumerate(TENANTS)}
        with loading(loads) as begin:
            loads["AUTH_t1"].await_second(begin + SETTLE)
            stage.cluster.kill("proxy2")
            died = time.time()
            loads["AUTH_t1"].await_second(int(died) + row.seconds(20))
            stage.cluster.restart("proxy2")
            joined = time.time()
            last = int(joined) + row.seconds(20)
            await_all(loads, last)
        title = f"Downloads: one of two proxies is killed and started again, {_NAMES[side]} enforce"
        marks = {died: "a proxy is killed", joined: "it joins again"}
        row.keep(f"proxy-{side}", title, loads, (begin, last), {"floor of each": each}, marks=marks)
        found = []
        for word, moment, end in (("dies", died, int(joined) - 1), ("joins", joined, last)):
            took, equal = _settled(loads, moment, end)
            what = f"a proxy {word}, {_NAMES[side]} enforce"
            first = f"{what}: until shares are equal"
            found.append(Figure("proxy", first, took, f"{took:.1f} s", "≤ 3 s", took <= 3, _cut(loads, died)))
            found.append(
                Figure("proxy", f"{what}: min/max of equals then", equal, f"{equal:.3f}", "≥ 0.97", equal >= 0.97)
            )
        return found


def _cut(loads: Mapping[str, Load], died: float) -> str:
    """Requests that failed with the proxy, in words; other failures, if there were any."""
    failed = [(at, one.errors) for load in loads.values() for at, one in load.seconds.items() if one.errors]
    if all(int(died) <= at <= died + 2 for at, _ in failed):
        return f"{sum(count for _, count in failed)} requests cut with the proxy that was killed"
    return faults(loads)


def _settled(loads: Mapping[str, Load], moment: float, end: int) -> tuple[float, float]:
    """Seconds until all tenants have the same rate within 10 %, and min/max of their means from three seconds on."""
    rates = {name: load.rates(int(moment), end) for name, load in loads.items()}
    seconds = sorted(set.intersection(*(set(one) for one in rates.values())))
    right = [
        at
        for at in seconds
        if min(one[at] for one in rates.values()) >= 0.9 * max(one[at] for one in rates.values()) > 0
    ]
    took = next((at - moment for at in right if at >= moment), float(end))
    means = [statistics.mean(rate for at, rate in one.items() if at >= moment + 3) for one in rates.values()]
    return max(took, 0.0), min(means) / max(means)


ROWS: Final[dict[str, Callable[[Row], list[Figure]]]] = {
    **{f"floors-{side}": lambda row, side=side: floors(row, side) for side in SIDES},
    "floors-put": lambda row: floors(row, "proxy", "PUT"),
    **{f"mixed-{side}": lambda row, side=side: mixed(row, side) for side in SIDES},
    **{f"unused-{side}": lambda row, side=side: unused(row, side) for side in SIDES},
    **{f"noisy-{side}": lambda row, side=side: noisy(row, side) for side in SIDES},
    **{f"proxy-{side}": lambda row, side=side: proxy(row, side) for side in SIDES},
    "plain": plain,
    "storm": storm,
}


def measure(scale: Scale, out: Path | None = None, names: Sequence[str] = ()) -> tuple[list[Figure], dict[str, str]]:
    """The figures of the rows called ``names``, by default all, and the reasons of missing ones."""
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    for name in names or ROWS:
        say(f"bandwidth: {name}")
        row = Row(scale, out)
        try:
            found = [replace(one, beside=_joined(one.beside, row.on)) for one in ROWS[name](row)]
        except (SluiceError, ClientError, OSError, StopIteration) as error:
            failed[name] = str(error)
            say(f"failed: {error}")
            continue
        figures += found
        print(table(found), file=sys.stderr, flush=True)
    return figures, failed


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def figures(scale: Scale) -> list[Figure]:
    """All rows, for ``python -m benchmarks --only bandwidth``.

    :raises Partly: if a row could not be measured; it has the others
    """
    found, failed = measure(scale, scale.pictures)
    if failed:
        raise Partly(_joined(*(f"{name}: {reason}" for name, reason in failed.items())), found)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if every row ran, whatever it measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bandwidth.objectives", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", action="append", choices=tuple(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="8 seconds for each row instead of 60")
    parser.add_argument("--folder", type=Path, help="where clusters live while they are measured (default: temporary)")
    parser.add_argument("--out", type=Path, help="folder for pictures (PNG), their data and figures.json")
    given = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    for folder in (given.folder, given.out):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sb-", dir=given.folder) as place:
        machine = machine_facts(Path(place))
        figures, failed = measure(Scale(Path(place), given.quick), given.out, given.only or ())
    print(table(figures))
    for name, reason in failed.items():
        print(f"FAILED {name}: {reason}")
    if given.out is not None:
        document = {
            "machine": machine,
            "quick": given.quick,
            "figures": [one.to_data() for one in figures],
            "failed": failed,
        }
        (given.out / "figures.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
