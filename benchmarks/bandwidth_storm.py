"""A ring is rebalanced while three tenants read: what replication takes from them, before it is capped and after.

Objects lie on two of three object servers; then the third joins the ring, and a third of everything moves.  All devices
are on one slow disk (``sluice_aio.slow_disk``; as root), which gives just what the readers may have, and nothing stays
in the page cache: what replication reads, they lack.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import Figure
from benchmarks.scale import say
from swift.common.ring import RingBuilder

from sluice_aio import slow_disk
from sluice_aio.bandwidth_stage import Capacity, Stage, Terms
from sluice_aio.layout import OBJECT_DEVICES
from sluice_aio.rings import PART_POWER, device
from sluice_core.bandwidth import REPLICATION
from sluice_core.errors import PeerError

if TYPE_CHECKING:
    from benchmarks.bandwidth import Row

MB: Final = 1_000_000
_CAP: Final = 5 * MB
#: What the readers may have, and the disk can read.
_CAPACITY: Final = 70 * MB
_DISK: Final = slow_disk.Speed(rate=75 * MB, delay=0.0)
#: Objects of each reader, so many that few are read by two clients at once.
_OBJECTS: Final = 48
_IMAGE: Final = 8 << 30
_REPLICATOR: Final = {"concurrency": "8", "interval": "1"}
#: Seconds over which a floor is judged.
_SPAN: Final = 5
#: Seconds after which what was copied has been written back: that is the kernel's, and nobody holds it back.
_WRITTEN_BACK: Final = 35
#: Swift's servers look for a new ring so often, in seconds, and a little.
_RELOAD: Final = 17
_OBJECT: Final = 2 << 20
_BULK: Final = 700
_DAEMON: Final = "object-replicator"


class _Ring:
    """The ring of the first storage policy, of some of the object servers."""

    def __init__(self, stage: Stage, servers: int) -> None:
        self._layout = stage.cluster.layout
        self._builder = RingBuilder(PART_POWER, 2, 1)
        for number in range(servers):
            self.add(number)

    def add(self, number: int) -> None:
        """One more object server, by its number."""
        server, name = list(OBJECT_DEVICES.items())[number]
        self._builder.add_dev(device(self._layout, number, server, name))

    def write(self) -> None:
        """Balance it and let Swift know."""
        self._builder.pretend_min_part_hours_passed()
        self._builder.rebalance(seed=1)
        self._builder.get_ring().save(str(self._layout.swift_dir / "object.ring.gz"))


class _Copies(threading.Thread):
    """What storage nodes copy, as the controller shows it, second by second."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._over = threading.Event()
        self.seconds: dict[int, float] = {}

    def run(self) -> None:
        """Until :meth:`end`."""
        while not self._over.wait(0.5):
            moved = [row["measured"] for row in self._stage.flows() if row["method"] == REPLICATION]
            self.seconds[int(time.time())] = float(sum(moved))

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def _below(rates: Mapping[int, float], floor: float) -> float:
    """How far the worst span was below ``floor``, as a part of it."""
    seconds = sorted(rates)
    spans = [seconds[at : at + _SPAN] for at in range(max(len(seconds) - _SPAN + 1, 1))]
    return max(max(0.0, 1 - statistics.mean(rates[at] for at in span) / floor) for span in spans)


@contextlib.contextmanager
def _stage(folder: Path) -> Iterator[Stage]:
    reason = slow_disk.missing()
    if reason:
        raise PeerError(reason)
    options = {"keep_cache_size": "0", **_REPLICATOR}
    terms = Terms(capacity=Capacity(get=_CAPACITY, put=None), objects=_OBJECTS, storage_options=options)
    with (
        tempfile.TemporaryDirectory(prefix="bs-", dir=folder) as place,
        slow_disk.disk(Path(place), size=_IMAGE, speed=_DISK) as disk,
        Stage(Path(place) / "c", terms, disks=disk.folder / "devices") as stage,
    ):
        yield stage


def storm(row: Row) -> list[Figure]:
    """Floors of three readers while a third of all objects moves."""
    from benchmarks.bandwidth import CONNECTIONS, FLOORS, faults, loading, promise

    phase = row.scale.pick(25, 12)
    with _stage(row.scale.folder) as stage:
        ring = _Ring(stage, 2)
        ring.write()
        time.sleep(_RELOAD)
        for name in FLOORS:
            stage.fill(name)
        say(f"bandwidth: {_BULK} objects more, so that there is something to move")
        stage.fill("AUTH_bulk", objects=_BULK, sizes=(_OBJECT,))
        promise(stage, FLOORS, "proxy")
        loads = {name: stage.load(name, CONNECTIONS["proxy"], seed=at) for at, name in enumerate(FLOORS)}
        ring.add(2)
        ring.write()
        copies = _Copies(stage)
        copies.start()
        with loading(loads) as begin:
            calm = begin + max(_RELOAD, phase)
            loads["AUTH_t1"].await_second(calm)
            stage.cluster.run_daemon(_DAEMON, once=False, servers=("object1", "object2"))
            stormy = int(time.time()) + row.scale.pick(15, 10)
            loads["AUTH_t1"].await_second(stormy)
            stage.say(f"FOR CLUSTER DO SET replication WITH max_bw={_CAP}Bps")
            capped = int(time.time()) + _WRITTEN_BACK
            last = capped + phase
            for load in loads.values():
                load.await_second(last)
        copies.end()
        row.keep(
            "storm", "a ring is rebalanced; then replication is capped", loads, begin, last, FLOORS, copies.seconds
        )
        phases = {"before": (begin + 5, calm), "uncapped": (calm + 2, stormy), "capped": (capped, last)}
        below = {
            word: max(_below(loads[name].rates(*phase), floor) for name, floor in FLOORS.items())
            for word, phase in phases.items()
        }
        moved = {
            word: statistics.mean([rate for at, rate in copies.seconds.items() if first <= at <= end] or [0.0]) / MB
            for word, (first, end) in phases.items()
        }
        beside = (
            f"before the storm {below['before']:.1%}, uncapped {below['uncapped']:.1%}; copies uncapped "
            f"{moved['uncapped']:.1f} MB/s, capped at {_CAP / MB:g} {moved['capped']:.1f}; {faults(loads)}"
        )
        what = f"replication storm, capped: readers below their floor, worst {_SPAN} seconds"
        worst = below["capped"]
        return [Figure("storm", what, worst, f"{worst:.1%}", "≤ 5 %", worst <= 0.05, beside)]
