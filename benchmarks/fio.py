"""fio, on a block device or an NBD server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import PeerError

#: Requests that are under way together, by default.
DEPTH: Final = 16


@dataclass(frozen=True, slots=True)
class FioRates:
    """Bytes and operations per second, reads and writes together, of one run."""

    bandwidth: float
    iops: float


def nbd_target(uri: str) -> tuple[str, ...]:
    """fio's options for an NBD server."""
    return ("--ioengine=nbd", f"--uri={uri}")


def device_target(path: str, size: int) -> tuple[str, ...]:
    """fio's options for the first ``size`` bytes of a block device, past the page cache."""
    return ("--ioengine=libaio", "--direct=1", f"--filename={path}", f"--size={size}")


def run_fio(target: Sequence[str], load: str, block: str, seconds: int, depth: int = DEPTH) -> FioRates:
    """Load ``target`` for some seconds.

    :param load: as of fio's ``rw``
    :param block: bytes of a request, as fio reads them (``4k``)
    :raises PeerError: when a request failed
    """
    job = ("--name=load", *target, f"--rw={load}", f"--bs={block}", f"--iodepth={depth}")
    command = ["fio", *job, "--time_based", f"--runtime={seconds}", "--output-format=json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise PeerError(f"fio failed: {ended.stderr.strip()}")
    # the engine for NBD writes a line of its own before the JSON
    told = json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]
    ways = (told["read"], told["write"])
    return FioRates(sum(way["bw_bytes"] for way in ways), sum(way["iops"] for way in ways))
