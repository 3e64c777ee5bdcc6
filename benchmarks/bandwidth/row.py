"""The common part of the rows of :mod:`benchmarks.bandwidth.objectives`: disks, clusters, tenants and plots."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.bandwidth.plots import Course, paint
from benchmarks.harness.machine import file_system
from benchmarks.harness.scale import Scale, say
from tests.support.cluster import slow_disk
from tests.support.cluster.bandwidth_cluster import Stage, Terms
from tests.support.cluster.load import Load

from sluice_aio.base.layout import OBJECT_DEVICES

MB: Final = 1_000_000
FLOORS: Final = {"AUTH_t1": 30 * MB, "AUTH_t2": 20 * MB, "AUTH_t3": 10 * MB}
#: Connections of each tenant: object servers need more of them, because clients choose their server.
CONNECTIONS: Final = {"proxy": 12, "storage_node": 96}
#: Bytes of each device, sparse: all uploads of a row fit.
_IMAGE: Final = 16 << 30
_WORDS: Final = {"proxy": "PROXY", "storage_node": "STORAGE_NODE"}


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a cluster; ``disks`` holds its devices, by default they are in ``folder`` too."""

    folder: Path
    disks: Path | None = None


@dataclass(slots=True)
class Row:
    """The context of a row: its folder, its duration, and its plots; ``on`` names the disks of the measurement."""

    scale: Scale
    out: Path | None
    on: str = field(default="", init=False)

    def seconds(self, full: int = 60, quick: int = 8) -> int:
        """The duration of the measurement."""
        return self.scale.pick(full, quick)

    @contextlib.contextmanager
    def place(self, prefix: str = "bw-") -> Iterator[Place]:
        """A folder with loop devices with XFS and BFQ, if the user may create them; otherwise with folders."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=self.scale.folder)))
            if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
                self.on = f"devices: folders on {file_system(folder)}"
                yield Place(folder)
                return
            disks = folder / "disks"
            disks.mkdir()
            for server in OBJECT_DEVICES:
                stack.enter_context(slow_disk.disk(disks, server, _IMAGE))
            self.on = f"devices: XFS on loop devices with BFQ, images on {file_system(folder)}"
            yield Place(folder / "c", disks)

    @contextlib.contextmanager
    def stage(self, terms: Terms) -> Iterator[Stage]:
        """A separate cluster."""
        with self.place() as place, Stage(place.folder, terms, place.disks) as stage:
            yield stage

    def keep(
        self,
        name: str,
        title: str,
        loads: Mapping[str, Load],
        seconds: tuple[int, int],
        floors: Mapping[str, float],
        *,
        expected: Mapping[str, float] | None = None,
        copies: Mapping[int, float] | None = None,
        marks: Mapping[float, str] | None = None,
    ) -> None:
        """Store and plot the first to the last of ``seconds``, if plots are wanted.

        :param expected: the rate of each tenant with its part of the spare bandwidth
        :param copies: the rate of replication
        :param marks: unix time → event
        """
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        first, last = seconds
        rates = {who: load.rates(first, last) for who, load in loads.items()}
        if copies is not None:
            rates["replication"] = {at: rate for at, rate in copies.items() if first <= at <= last}
        course = Course(title, rates, floors, expected or {}, marks or {})
        (self.out / f"{name}.json").write_text(json.dumps(course.to_data()) + "\n", encoding="utf-8")
        if importlib.util.find_spec("matplotlib") is None:
            say(f"no picture of {name}: matplotlib is missing")
            return
        paint(self.out / f"{name}.png", course)


@contextlib.contextmanager
def loading(loads: Mapping[str, Load]) -> Iterator[int]:
    """Start all loads; the first whole second."""
    with contextlib.ExitStack() as stack:
        for load in loads.values():
            stack.enter_context(load)
        yield int(time.time()) + 1


def await_all(loads: Mapping[str, Load], second: int) -> None:
    """Wait until that second is known for all of them."""
    for load in loads.values():
        load.await_second(second)


def promise(stage: Stage, floors: Mapping[str, float], side: str, parameter: str = "get_bw") -> None:
    """A policy for each tenant."""
    for name, floor in floors.items():
        say_floor(stage, name, side, [f"{parameter}={round(floor)}Bps"])


def say_floor(stage: Stage, name: str, side: str, rates: Sequence[str]) -> None:
    """A policy for one tenant."""
    stage.say(f"FOR TENANT {name} DO SET bandwidth WITH {' '.join(rates)} ON {_WORDS[side]}")


def faults(loads: Mapping[str, Load]) -> str:
    """Failures of clients, in words."""
    found = [(name, *load.errors()) for name, load in loads.items()]
    return "; ".join(f"{name}: {count} errors, {last}" for name, count, last in found if count) or "no errors"
