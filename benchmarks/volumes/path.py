"""The rates of an attached volume, by its source and its export, against a loop device on the same file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale
from benchmarks.volumes.konnector import attached, cinder_export, fill, loop_device, make_konnector
from benchmarks.volumes.loads import LARGE, SIZE, SMALL, Run, compare, on_device, on_nbd

from sluice_block.datapath.records import NBD
from sluice_block.konnector.konnector import Konnector

_AGAINST: Final = "against a loop device on the same file"
_READS, _WRITES = (load.title for load in SMALL)
_LARGE_READS: Final = LARGE[0].title
Shown = Callable[[Scale, Konnector, Path], contextlib.AbstractContextManager[Run]]


def measure(scale: Scale) -> list[Figure]:
    """Rows of each source and export; the block devices have targets.

    :raises PeerError: for users other than root
    """
    konnector = make_konnector(scale)
    source = scale.folder / "volume"
    fill(source, SIZE)
    rows: tuple[tuple[str, str, Shown, Mapping[str, float]], ...] = (
        ("volume device", "block device of a file", _of_file, {_READS: 0.35, _WRITES: 0.35, _LARGE_READS: 0.8}),
        (
            "volume nbd device",
            "block device of Cinder's NBD export",
            _of_export,
            {_READS: 0.13, _WRITES: 0.15, _LARGE_READS: 0.4},
        ),
        ("volume socket", "NBD socket of a file", _nbd_socket, {}),
    )
    figures = []
    for name, what, shown, least in rows:
        with shown(scale, konnector, source) as own, loop_device(source) as bare:
            for load in (*SMALL, *LARGE):
                runs = (own, on_device(bare))
                figures.append(compare(scale, name, f"{what}, {_AGAINST}", runs, load, least.get(load.title), 4))
    return figures


@contextlib.contextmanager
def _of_file(_: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    with attached(konnector, source) as volume:
        yield on_device(volume.device())


@contextlib.contextmanager
def _of_export(scale: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    with cinder_export(scale, source) as export, attached(konnector, source, connection=export.connection) as volume:
        yield on_device(volume.device())


@contextlib.contextmanager
def _nbd_socket(_: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    with attached(konnector, source, NBD) as volume:
        yield on_nbd(volume.device())
