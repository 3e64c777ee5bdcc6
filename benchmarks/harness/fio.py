"""fio, on a block device, a file or an NBD server."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import PeerError

#: Concurrent requests, by default.
DEPTH: Final = 16
#: Seconds of a load that is ended from outside.
_UNTIL_STOPPED: Final = 3600


@dataclass(frozen=True, slots=True)
class FioRates:
    """Bytes and operations per second, reads and writes together, of one run; the longest request in seconds."""

    bandwidth: float
    iops: float
    longest: float


def nbd_target(uri: str) -> tuple[str, ...]:
    """fio's options for an NBD server."""
    return ("--ioengine=nbd", f"--uri={uri}")


def device_target(path: str, size: int) -> tuple[str, ...]:
    """fio's options for the first ``size`` bytes of a block device or a file, past the page cache."""
    return ("--ioengine=libaio", "--direct=1", f"--filename={path}", f"--size={size}")


def run_fio(target: Sequence[str], load: str, block: str, seconds: int, depth: int = DEPTH) -> FioRates:
    """Load ``target`` for some seconds.

    :param load: as of fio's ``rw``
    :param block: bytes of a request, as fio reads them (``4k``)
    :raises PeerError: if a request failed
    """
    return Fio(target, load, block, seconds, depth).finish()


class Fio:
    """fio while it runs; :meth:`finish` or :meth:`stop` it.

    :param more: further options
    """

    def __init__(
        self, target: Sequence[str], load: str, block: str, seconds: int, depth: int = DEPTH, more: Sequence[str] = ()
    ) -> None:
        job = ("--name=load", *target, f"--rw={load}", f"--bs={block}", f"--iodepth={depth}", *more)
        command = ["fio", *job, "--time_based", f"--runtime={seconds}", "--output-format=json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def is_running(self) -> bool:
        """Whether it still loads its target."""
        return self._process.poll() is None

    def stop(self) -> FioRates:
        """End it early.

        :raises PeerError: as of :meth:`finish`
        """
        self._process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self) -> FioRates:
        """Return its results after its end.

        :raises PeerError: if a request failed, or read bytes differ from the written ones
        """
        output, errors = self._process.communicate()
        begin = output.find("{")  # the engine for NBD writes a line of its own before the JSON
        found = json.loads(output[begin:])["jobs"][0] if begin >= 0 else None
        if found is None or found["error"]:
            raise PeerError(f"fio failed: {errors.strip() or output.strip()}")
        ways = (found["read"], found["write"])
        longest = max(way["lat_ns"]["max"] for way in ways) / 1e9
        return FioRates(sum(way["bw_bytes"] for way in ways), sum(way["iops"] for way in ways), longest)

    def kill(self) -> None:
        """End it in any state."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def loading(target: Sequence[str], load: str, block: str, depth: int = DEPTH) -> Iterator[Fio]:
    """Load ``target`` with fio during the context.

    :raises PeerError: if a request failed
    """
    running = Fio(target, load, block, _UNTIL_STOPPED, depth)
    try:
        yield running
        running.stop()
    finally:
        running.kill()
