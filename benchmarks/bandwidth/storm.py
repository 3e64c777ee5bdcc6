"""A ring is rebalanced while three tenants read: the bandwidth that replication takes from them, before and after a
cap.

Objects lie on two of three object servers; then the third joins the ring, and a third of everything moves.  All devices
are on one slow disk (``tests.support.cluster.slow_disk``; as root), whose rate equals that of the readers, and
nothing stays in the page cache: replication's reads reduce theirs.  Little data may wait in memory for a write to that
disk, so copies are written when they are made: otherwise the kernel would keep them for half a minute, and
write it back without priority after the cap is set.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.bandwidth.row import CONNECTIONS, FLOORS, MB, Row, await_all, faults, loading, promise
from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import say
from swift.common.ring import RingBuilder
from tests.support.cluster import slow_disk
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.daemons import run_daemon
from tests.support.cluster.load import Load

from sluice_aio.base.layout import OBJECT_DEVICES
from sluice_aio.conf.swift import PART_POWER, device
from sluice_core.errors import PeerError
from sluice_core.messages.bandwidth import REPLICATION

_CAP: Final = 5 * MB
#: The rate of the readers, and of the disk.
_CAPACITY: Final = 70 * MB
_DISK: Final = slow_disk.Speed(rate=75 * MB, delay=0.0)
#: Objects of each reader, so many that two clients seldom read the same one.
_OBJECTS: Final = 48
_IMAGE: Final = 8 << 30
_REPLICATOR: Final = {"concurrency": "8", "interval": "1"}
#: Seconds over which a floor is evaluated.
_SPAN: Final = 5
#: Seconds after the cap from which on it is evaluated.
_SETTLE: Final = 5
#: Bytes that may wait to be written to the disk.
_DIRTY: Final = 16 << 20
#: Interval in seconds at which Swift's servers check for a new ring, and a margin.
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
        """Balance it and inform Swift."""
        self._builder.pretend_min_part_hours_passed()
        self._builder.rebalance(seed=1)
        self._builder.get_ring().save(str(self._layout.swift_dir / "object.ring.gz"))


class _Copies(threading.Thread):
    """The rate of copies between storage nodes, as the controller reports it, second by second."""

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
        """Stop polling."""
        self._over.set()
        self.join()


def below(rates: Mapping[int, float], floor: float, span: int = _SPAN) -> float:
    """Deviation of the worst ``span`` seconds below ``floor``, as a part of it."""
    seconds = sorted(rates)
    spans = [seconds[at : at + span] for at in range(max(len(seconds) - span + 1, 1))]
    return max(max(0.0, 1 - statistics.mean(rates[at] for at in one) / floor) for one in spans)


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
        disk.dirty_within(_DIRTY),
        Stage(Path(place) / "c", terms, disks=disk.folder / "devices") as stage,
    ):
        yield stage


@dataclass(frozen=True, slots=True)
class _Times:
    """Wall-clock seconds: of the first that counts, and of the begin of replication, of the cap, and of the end."""

    begin: int
    calm: int
    stormy: int
    cap: int
    last: int

    def phases(self) -> Mapping[str, tuple[int, int]]:
        """First and last second of each."""
        return {
            "before": (self.begin + 5, self.calm),
            "uncapped": (self.calm + 2, self.stormy),
            "settling": (self.cap, self.cap + _SETTLE - 1),
            "capped": (self.cap + _SETTLE, self.last),
        }


def storm(row: Row) -> list[Figure]:
    """Floors of three readers while a third of all objects moves."""
    with _stage(row.scale.folder) as stage:
        row.on = f"one slow disk, {_DIRTY >> 20} MiB may wait to be written to it"
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
        times = _run(row, stage, loads)
        copies.end()
    title = f"Downloads while a ring is rebalanced, all from one disk of {_DISK.rate / MB:g} MB/s"
    marks = {times.calm + 1: "replication begins", times.cap: f"replication is capped at {_CAP / MB:g} MB/s"}
    row.keep("storm", title, loads, (times.begin, times.last), FLOORS, copies=copies.seconds, marks=marks)
    return [_figure(loads, copies.seconds, times)]


def _run(row: Row, stage: Stage, loads: Mapping[str, Load]) -> _Times:
    with loading(loads) as begin:
        calm = begin + max(_RELOAD, row.scale.pick(25, 12))
        await_all(loads, calm)
        run_daemon(stage.cluster, _DAEMON, once=False, servers=("object1", "object2"))
        stormy = int(time.time()) + row.scale.pick(15, 10)
        await_all(loads, stormy)
        stage.say(f"FOR CLUSTER DO SET replication WITH max_bw={_CAP}Bps")
        cap = int(time.time()) + 1
        last = cap + _SETTLE + row.scale.pick(60, 40)
        await_all(loads, last)
    return _Times(begin, calm, stormy, cap, last)


def _figure(loads: Mapping[str, Load], copies: Mapping[int, float], times: _Times) -> Figure:
    phases = times.phases()

    def worst(word: str, span: int = _SPAN) -> float:
        return max(below(loads[name].rates(*phases[word]), floor, span) for name, floor in FLOORS.items())

    def moved(word: str) -> float:
        first, last = phases[word]
        return statistics.mean([rate for at, rate in copies.items() if first <= at <= last] or [0.0]) / MB

    beside = (
        f"before the storm {worst('before'):.1%}, uncapped {worst('uncapped'):.1%}; worst second of the first "
        f"{_SETTLE} after the cap {worst('settling', 1):.1%}, of the others {worst('capped', 1):.1%}; copies uncapped "
        f"{moved('uncapped'):.1f} MB/s, capped at {_CAP / MB:g} {moved('capped'):.1f}; {faults(loads)}"
    )
    found = worst("capped")
    what = f"replication storm, from {_SETTLE} s after the cap: readers below their floor, worst {_SPAN} seconds"
    return Figure("storm", what, found, f"{found:.1%}", "≤ 5 %", found <= 0.05, beside)
