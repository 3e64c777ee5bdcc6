"""A ring is rebalanced while three tenants read: what replication takes from them, before it is capped and after.

Objects lie on two of three object servers; then the third joins the ring, and a third of everything moves.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from benchmarks.figures import Figure
from benchmarks.scale import say
from swift.common.ring import RingBuilder

from sluice_aio.bandwidth_stage import Stage, Terms
from sluice_aio.layout import OBJECT_DEVICES
from sluice_aio.rings import PART_POWER, device

if TYPE_CHECKING:
    from benchmarks.bandwidth import Row

MB: Final = 1_000_000
_CAP: Final = 5 * MB
#: Swift's servers look for a new ring so often, in seconds, and a little.
_RELOAD: Final = 17
_OBJECT: Final = 2 << 20
_BULK: Final = 400
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


def storm(row: Row) -> list[Figure]:
    """Floors of three readers while a third of all objects moves."""
    from benchmarks.bandwidth import CONNECTIONS, FLOORS, faults, loading, promise

    phase = row.scale.pick(25, 12)
    with row.stage(Terms()) as stage:
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
        with loading(loads) as begin:
            calm = begin + max(_RELOAD, phase)
            loads["AUTH_t1"].await_second(calm)
            stage.cluster.run_daemon(_DAEMON, once=False, servers=("object1", "object2"))
            stormy = int(time.time()) + phase
            loads["AUTH_t1"].await_second(stormy)
            stage.say(f"FOR CLUSTER DO SET replication WITH max_bw={_CAP}Bps")
            capped = int(time.time()) + 5
            last = capped + phase
            for load in loads.values():
                load.await_second(last)
        row.keep("storm", "a ring is rebalanced; then replication is capped", loads, begin, last, FLOORS)
        below = {
            word: max(
                max(0.0, 1 - rate / FLOORS[name]) for name in FLOORS for rate in loads[name].rates(first, end).values()
            )
            for word, first, end in (
                ("before", begin + 5, calm),
                ("uncapped", calm + 2, stormy),
                ("capped", capped, last),
            )
        }
        beside = f"before the storm {below['before']:.1%}, uncapped {below['uncapped']:.1%}; {faults(loads)}"
        what = "replication storm, capped: readers below their floor, worst second"
        worst = below["capped"]
        return [Figure("storm", what, worst, f"{worst:.1%}", "≤ 5 %", worst <= 0.05, beside)]
