"""The cost of filters of volumes in nbdkit alone: it serves a file in memory, so no disk hides the cost.

Stacks that change content are those of volumes that a konnector attached, since LUKS needs its header.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, reported
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, fill, make_konnector
from benchmarks.volumes.loads import LARGE, SIZE, SMALL, compare, on_nbd
from tests.support.block.nbd import Server, serve

from sluice_block.datapath.records import NBD
from sluice_block.konnector.konnector import Konnector
from sluice_block.stack.build import build
from sluice_block.stack.page import Page
from sluice_core.errors import PeerError
from sluice_volumes.messages import LUKS, StackStep

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- a folder of our own is made in it
_LEAST: Final = 0.97
#: The filters before those of each stack.
_ALWAYS: Final = ("nop", "throttle")
_CONTENT: Final = (
    ("xor",),
    ("bitrev",),
    (LUKS,),
    ("xor", "bitrev"),
    ("xor", LUKS),
    ("nop", "xor", "nop", "bitrev"),
)
#: Space for a LUKS header, which must be zero.
_HEADER: Final = 4 << 20


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
    """Rows of filters that change nothing, and of those that do.

    :raises PeerError: for users other than root
    """
    folder = Path(tempfile.mkdtemp(prefix="sb-", dir=_MEMORY))
    try:
        place = _Place(folder, build(scale.folder / "built"), folder / "volume")
        fill(place.source, SIZE)
        figures = list(_passing(scale, place))
    finally:
        shutil.rmtree(folder)
    return [*figures, *_changing(scale)]


def _passing(scale: Scale, place: _Place) -> Iterator[Figure]:
    rows = (
        ("volume nop", "nop in the stack, against none", ("nop",), (), (*SMALL, *LARGE), _LEAST, 10),
        ("volume always", "nop and throttle, which each stack has, against none", _ALWAYS, (), SMALL, None, 4),
        ("volume further nop", "a further nop", (*_ALWAYS, "nop"), _ALWAYS, LARGE, _LEAST, 10),
    )
    for name, what, first, second, loads, least, pairs in rows:
        with place.serve("first", first) as one, place.serve("second", second) as other:
            runs = (on_nbd(one.uri), on_nbd(other.uri))
            for load in loads:
                yield compare(scale, name, what, runs, load, least, pairs)


def _changing(scale: Scale) -> Iterator[Figure]:
    """CPU seconds of nbdkit for each GB of requests of 1 MB, beside those of a stack without the filters."""
    konnector = make_konnector(scale)
    bare = _cpu_per_gb(scale, konnector, ())
    for filters in _CONTENT:
        name = ", ".join(filters)
        found = _cpu_per_gb(scale, konnector, filters)
        what = f"`{name}`: CPU seconds of nbdkit per GB, half read and half written"
        yield reported(f"volume cpu {name}", what, found, "s", f"without them {bare:.3f} s")


def _cpu_per_gb(scale: Scale, konnector: Konnector, filters: Sequence[str]) -> float:
    """Of a volume's stack, which fio uses without its front."""
    say(f"volume cpu: {', '.join(filters)}")
    seconds, moved = scale.pick(4, 1), 0.0
    with tempfile.TemporaryDirectory(prefix="sb-", dir=_MEMORY) as folder:
        source = Path(folder, "volume")
        fill(source, SIZE + _HEADER, zeros=_HEADER)
        fields = {"secret": "a passphrase", "fresh": True} if LUKS in filters else {}
        stack = tuple(map(StackStep, filters))
        with attached(konnector, source, NBD, stack=stack, **fields) as volume:
            process = volume.stack.process()
            if process is None:
                raise PeerError(f"the stack `{', '.join(filters)}` does not run")
            run, begin = on_nbd(f"nbd+unix:///?socket={volume.stack.socket()}"), cpu_seconds([process.pid])
            for _ in range(scale.pick(2, 1)):
                moved += sum(run(load, seconds).bandwidth * seconds for load in LARGE)
            return (cpu_seconds([process.pid]) - begin) / (moved / 1e9)
