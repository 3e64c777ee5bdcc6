"""A million items with motifs in the runtime, over a synthetic storage: memory, attachments, a restart.

Names have 60 characters. The storage keeps nothing, so only the runtime's memory is measured.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure, at_most, reported
from benchmarks.harness.scale import Scale, say

from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim

_MOTIF: Final = Motif("concat", {"of": "source"})
_RECORD: Final = Record((_MOTIF,), {"source": "1"})
_EMPTY: Final = "d41d8cd98f00b204e9800998ecf8427e"


class MadeUpItems(MemoryShim):
    """Items of no length with a motif from one source; the first ``live`` ones are expanded.

    :param record: of each view, except that of the source
    """

    items: int = 0
    live: int = 0
    record: Record = _RECORD

    def view(self, name: str) -> ItemView | None:
        return ItemView(name, Plain("1", 0, _EMPTY), Record() if name == "source" else self.record)

    def annotate(self, seen: ItemView, record: Record) -> bool:
        return True

    def scan(self) -> Iterator[ItemView]:
        for number in range(self.items):
            yield ItemView(_name(number), Plain("1", 0, _EMPTY), self.record, contracted=number >= self.live)


def measure(scale: Scale) -> list[Figure]:
    """Resident bytes of each item, attachments a second, seconds of a restart."""
    items, live = scale.pick(1_000_000, 20_000), scale.pick(20_000, 400)
    say(f"motif_runtime: a restart with {items} items")
    shim = MadeUpItems()
    shim.items, shim.live = items, live
    runtime = _runtime(shim)
    gc.collect()
    before = _resident()
    start = time.perf_counter()
    runtime.restart()
    seconds = time.perf_counter() - start
    each = (_resident() - before) / items
    start = time.perf_counter()
    for number in range(live):
        runtime.notify_close(runtime.notify_open(_name(number)))
    opens = live / (time.perf_counter() - start)
    attached = _attach(scale.pick(100_000, 2_000))
    facts = {"items": items, "live": live}
    what = f"{items} items, {live} with their bytes"
    return [
        at_most("motif runtime", f"{what}: resident bytes each", each, 300, "B", digits=0, **facts),
        at_most("motif runtime", f"{what}: restart", seconds, 10, "s", digits=1, **facts),
        reported("motif runtime", f"{what}: opens by one thread", opens, "/s", "", digits=0, **facts),
        reported("motif runtime", "attachments by one thread", attached, "/s", "", digits=0, **facts),
    ]


def _attach(count: int) -> float:
    shim = MadeUpItems()
    shim.record = Record()
    runtime = _runtime(shim)
    start = time.perf_counter()
    for number in range(count):
        runtime.attach_motif(_name(number), _MOTIF)
    return count / (time.perf_counter() - start)


def _runtime(shim: MadeUpItems) -> Runtime:
    return Runtime(shim, LocalLeases(), load_templates(), eager=False)


def _name(number: int) -> str:
    return f"AUTH_0123456789abcdef0123456789abcdef/thumbnails/{number:011d}"


def _resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
