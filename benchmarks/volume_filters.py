"""What filters of volumes cost, nbdkit alone: it serves a file in memory, so that no disk hides anything."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.cpu import cpu_seconds
from benchmarks.figures import Figure, reported
from benchmarks.scale import Scale, say
from benchmarks.volume_loads import LARGE, SIZE, SMALL, compare, on_nbd
from tests.support.block.nbd import Server, serve

from sluice_block.stack.build import build
from sluice_block.stack.page import Page

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- a folder of our own is made in it
_LEAST: Final = 0.97
#: What stands before the filters of each stack.
_ALWAYS: Final = ("nop", "throttle")
_CONTENT: Final = (("xor",), ("bitrev",), ("xor", "bitrev"), ("nop", "xor", "nop", "bitrev"))


@dataclass(frozen=True, slots=True)
class _Place:
    folder: Path
    built: Path
    source: Path

    @contextlib.contextmanager
    def serve(self, name: str, filters: Sequence[str]) -> Iterator[Server]:
        """nbdkit with ``filters``; the first nop and the throttle have a page."""
        page = self.folder / f"{name}.page"
        page.unlink(missing_ok=True)
        Page.create(page).close()
        pages = [f"{one}-page={page}" for one in _ALWAYS if one in filters]
        with serve(self.folder, self.built, filters, "file", str(self.source), *pages, name=name) as server:
            yield server


def measure(scale: Scale) -> list[Figure]:
    """Rows of filters that change nothing, and of those that do."""
    folder = Path(tempfile.mkdtemp(prefix="sb-", dir=_MEMORY))
    try:
        place = _Place(folder, build(scale.folder / "built"), folder / "volume")
        with open("/dev/urandom", "rb") as random, place.source.open("wb") as file:
            for _ in range(SIZE >> 20):  # so that no write has memory to find
                file.write(random.read(1 << 20))
        return _passing(scale, place) + _changing(scale, place)
    finally:
        shutil.rmtree(folder)


def _passing(scale: Scale, place: _Place) -> list[Figure]:
    rows = (
        ("volume nop", "nop in the stack, against none", ("nop",), (), (*SMALL, *LARGE), _LEAST),
        ("volume always", "nop and throttle, which each stack has, against none", _ALWAYS, (), (*SMALL, *LARGE), None),
        ("volume further nop", "a further nop", (*_ALWAYS, "nop"), _ALWAYS, LARGE, _LEAST),
    )
    figures = []
    for name, what, first, second, loads, least in rows:
        with place.serve("first", first) as one, place.serve("second", second) as other:
            runs = (on_nbd(one.uri), on_nbd(other.uri))
            figures += [compare(scale, name, what, runs, load, least) for load in loads]
    return figures


def _changing(scale: Scale, place: _Place) -> list[Figure]:
    """CPU seconds of nbdkit for each GB of requests of 1 MB, beside those of a stack without the filters."""
    bare = _cpu_per_gb(scale, place, _ALWAYS)
    figures = []
    for filters in _CONTENT:
        name = ", ".join(filters)
        found = _cpu_per_gb(scale, place, (*_ALWAYS, *filters))
        what = f"`{name}`: CPU seconds of nbdkit per GB, half read and half written"
        figures.append(reported(f"volume cpu {name}", what, found, "s", f"without them {bare:.3f} s"))
    return figures


def _cpu_per_gb(scale: Scale, place: _Place, filters: Sequence[str]) -> float:
    say(f"volume cpu: {', '.join(filters)}")
    seconds = scale.pick(4, 1)
    with place.serve("cpu", filters) as server:
        run, pids = on_nbd(server.uri), [server.process.pid]
        begin, moved = cpu_seconds(pids), 0.0
        for _ in range(scale.pick(3, 1)):
            moved += sum(run(load, seconds).bandwidth * seconds for load in LARGE)
        return (cpu_seconds(pids) - begin) / (moved / 1e9)
