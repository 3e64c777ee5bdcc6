"""Encryption of 10 MB beside Swift's own encryption middleware, on proxies that are otherwise equal.

The second and the third proxy of this trio have ``keymaster`` and ``encryption`` in their pipelines.
"""

from __future__ import annotations

import random
import shutil
from typing import Final

from benchmarks.harness.blocks import Bench, Works, of
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, SLUICE, compare
from benchmarks.harness.scale import Scale, say
from benchmarks.harness.trio import ACCOUNT, Trio
from benchmarks.harness.works import expect, getting, make_container, putting

from sluice_core.errors import PeerError
from sluice_core.testing import assignment

OURS, SWIFTS = "ours", "swifts"
SIZE: Final = 10_000_000
LIMIT: Final = 1.05
_NAMES: Final = 4


def measure(scale: Scale) -> list[Figure]:
    """PUT, then GET of what was put."""
    with Trio(scale.folder / "encryption", other="encrypted") as trio:
        places = {name: OURS if name == SLUICE else SWIFTS for name in INSTANCES}
        for name, place in places.items():
            make_container(trio.client(name), place)
        trio.assign([assignment("ours.0", f"{ACCOUNT}/{OURS}", keyword="encryption", stage=500)])
        trio.check_in_force(OURS, "encryption")
        bench = Bench(trio)
        data = random.Random(9).randbytes(SIZE)
        uploads: Works = {name: putting(place, _NAMES, data) for name, place in places.items()}
        bench.warm(uploads, _NAMES)
        _check(trio, places, data)
        paths = {name: [f"{place}/put-{number}" for number in range(_NAMES)] for name, place in places.items()}
        downloads: Works = {name: getting(paths[name], SIZE) for name in INSTANCES}
        bench.warm(downloads, _NAMES)
        figures = [
            _compared(bench, "PUT", uploads, scale.pick(32, 4)),
            _compared(bench, "GET", downloads, scale.pick(32, 4)),
        ]
    shutil.rmtree(scale.folder / "encryption", ignore_errors=True)
    return figures


def _check(trio: Trio, places: dict[str, str], data: bytes) -> None:
    """Each returns the uploaded bytes, and stores other ones."""
    for name, place in places.items():
        answer = trio.client(name).request("GET", f"{place}/put-0")
        expect(answer, 200, SIZE)
        other = trio.client("plain" if name == SLUICE else SLUICE).request("GET", f"{place}/put-0")
        if answer.body != data or other.body == data:
            raise PeerError(f"`{place}` is not encrypted, or does not read back")


def _compared(bench: Bench, method: str, works: Works, cycles: int) -> Figure:
    say(f"encryption: {method} of 10 MB")
    blocks = bench.cycles(works, cycles, 4)
    latency = compare(of(blocks, lambda block: block.latency))
    cpu = compare(of(blocks, lambda block: block.cpu_per_request("proxy", "objects")))
    note = f"{latency.milliseconds()}; {latency.beside()}; CPU of proxy and object servers {cpu.ratio:.3f} ×"
    what = f"10 MB {method}, AES-256-GCM: time × Swift's own encryption"
    return at_most(f"encryption {method}", what, latency.ratio, LIMIT, "×", note)
