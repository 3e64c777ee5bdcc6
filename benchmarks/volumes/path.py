"""The rates of an attached volume, by each of its exports, against a loop device on the same file.

The FUSE export of qemu-storage-daemon is measured beside them.  Volumes do not use it, since it stored wrong bytes
(docs/adr/0040).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale
from benchmarks.volumes.konnector import attached, fill, loop_device, make_konnector
from benchmarks.volumes.loads import LARGE, SIZE, SMALL, Run, compare, on_device, on_nbd

from sluice_block.konnector.datapath.qemu_daemon import PROGRAM, nbd_client
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.records import BLOCK, NBD
from sluice_core.errors import PeerError

_AGAINST: Final = "against a loop device on the same file"
_PATIENCE: Final = 20.0


def measure(scale: Scale) -> list[Figure]:
    """Rows of each export, none of which has a target.

    :raises PeerError: for others than root
    """
    konnector = make_konnector(scale)
    source = scale.folder / "volume"
    fill(source, SIZE)
    rows = (
        ("volume device", f"block device (nbdfuse), {_AGAINST}", _block_device),
        ("volume socket", f"NBD socket, {_AGAINST}", _nbd_socket),
        ("volume fuse export", f"FUSE export of {PROGRAM}, not used, {_AGAINST}", _fuse_export),
    )
    figures = []
    for name, what, shown in rows:
        with shown(scale, konnector, source) as own, loop_device(source) as bare:
            for load in (*SMALL, *LARGE):
                figures.append(compare(scale, name, what, (own, on_device(bare)), load, pairs=4))
    return figures


@contextlib.contextmanager
def _block_device(_: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    with attached(konnector, source, BLOCK) as volume:
        yield on_device(volume.device())


@contextlib.contextmanager
def _nbd_socket(_: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    with attached(konnector, source, NBD) as volume:
        yield on_nbd(volume.device())


@contextlib.contextmanager
def _fuse_export(scale: Scale, konnector: Konnector, source: Path) -> Iterator[Run]:
    """A loop device over a storage daemon's file, over the stack of a volume."""
    file = scale.folder / "fuse"
    file.touch()
    with attached(konnector, source, NBD) as volume:
        node = nbd_client("stack", {"type": "unix", "path": str(volume.stack.socket())})
        export = {"type": "fuse", "id": "export", "node-name": "stack", "mountpoint": str(file), "writable": True}
        command = [PROGRAM, "--blockdev", json.dumps(node), "--export", json.dumps(export)]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            until = time.monotonic() + _PATIENCE
            while not file.stat().st_size:
                if daemon.poll() is not None or time.monotonic() > until:
                    raise PeerError(f"`{PROGRAM}` shows no file at `{file}`")
                time.sleep(0.01)
            with loop_device(file) as device:
                yield on_device(device)
        finally:
            daemon.terminate()
            daemon.wait(_PATIENCE)
