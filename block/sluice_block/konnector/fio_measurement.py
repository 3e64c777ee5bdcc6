"""Measures an attached volume with fio: the capacity of its pool for this machine, without filters and limits.

fio overwrites the volume.  It writes all of it first, so that reads find data and no holes.  Then it reads and writes
sequentially, in blocks of 1 MiB, and at random, in blocks of 4 KiB; writes count once they are flushed.  All I/O is
direct at the block device: caches of the back end are part of its capacity.

Each phase is one fio process, with a time limit.  It ends with the thread that started it, and so with the konnector,
also when that is killed.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
from dataclasses import dataclass
from typing import Any, Final

from sluice_block.datapath import loop_devices, processes
from sluice_block.datapath.records import ATTACHED, BLOCK, VolumeAttachment
from sluice_core.errors import Conflict, PeerError
from sluice_core.process.logs import with_log_fields

log = logging.getLogger(__name__)

RUNNING: Final = "running"
MEASURED: Final = "measured"
FAILED: Final = "failed"
#: Bytes per second of the slowest volume that can be overwritten within the time limit.
_SLOWEST: Final = 4 << 20
#: Additional seconds for the start of fio and its flush at the end.
_SPARE: Final = 120.0


@dataclass(frozen=True, slots=True)
class _Phase:
    """One run of fio: its name, its arguments, and the number of its report that is the figure."""

    name: str
    arguments: tuple[str, ...]
    direction: str
    figure: str


_SEQUENTIAL: Final = ("--bs=1M", "--iodepth=8")
_RANDOM: Final = ("--bs=4k", "--iodepth=32")
_FILL: Final = _Phase("fill", ("--rw=write", *_SEQUENTIAL), "write", "bw_bytes")
_FIGURES: Final = (
    _Phase("read_bw", ("--rw=read", *_SEQUENTIAL), "read", "bw_bytes"),
    _Phase("write_bw", ("--rw=write", *_SEQUENTIAL), "write", "bw_bytes"),
    _Phase("read_iops", ("--rw=randread", *_RANDOM), "read", "iops"),
    _Phase("write_iops", ("--rw=randwrite", *_RANDOM), "write", "iops"),
)


def check_measurable(attachment: VolumeAttachment, device: str) -> None:
    """
    :raises Conflict: when a user's data would be overwritten, or the measurement would not be of the pool
    """
    volume = attachment.volume
    if attachment.state != ATTACHED or attachment.export != BLOCK:
        raise Conflict(
            f"volume `{volume}` is {attachment.state} as {attachment.export}, expected an attached block device"
        )
    if attachment.account:
        raise Conflict(
            f"volume `{volume}` is of account `{attachment.account}`, expected one without: fio overwrites it"
        )
    filters = [one.keyword for one in (*attachment.steps(), *attachment.uploaded)]
    limits = [name for name, rate in attachment.limits_in_force().to_data().items() if rate]
    if filters or limits:
        names = ", ".join(f"`{one}`" for one in (*filters, *limits))
        raise Conflict(
            f"volume `{volume}` has {names}, expected neither filters nor limits: its pool is to be measured"
        )
    loop_devices.check_unused(device)
    if shutil.which("fio") is None:
        raise Conflict("`fio`, which measures volumes, is not on this machine: apt-get install fio")


class FioMeasurement:
    """One measurement of the block device ``device``.

    :param size: of the device, in bytes
    :param seconds: for each figure
    """

    def __init__(self, device: str, size: int, seconds: int) -> None:
        self._device = device
        self._size = size
        self._seconds = seconds
        self._state, self._phase, self._reason = RUNNING, _FILL.name, ""
        self._found: dict[str, float] = {}
        self._thread = threading.Thread(target=with_log_fields(self._run), name=f"fio on {device}", daemon=True)

    def start(self) -> None:
        """Begin to measure."""
        self._thread.start()

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._state == RUNNING

    def to_data(self) -> dict[str, Any]:
        """Return ``state``, ``phase``, the ``reason`` of a failure, and the figures after all measurements."""
        figures = self._found if self._state == MEASURED else {}
        return {"state": self._state, "phase": self._phase, "reason": self._reason, **figures}

    def _run(self) -> None:
        try:
            self._run_fio(_FILL, (), self._size / _SLOWEST)
            for phase in _FIGURES:
                self._phase = phase.name
                timed = ("--time_based", f"--runtime={self._seconds}")
                self._found[phase.name] = self._run_fio(phase, timed, self._seconds)
            self._state = MEASURED
        except PeerError as error:
            log.error("`%s` is not measured: %s", self._device, error)
            self._reason, self._state = str(error), FAILED

    def _run_fio(self, phase: _Phase, timed: tuple[str, ...], seconds: float) -> float:
        """Return the figure of a phase.

        :raises PeerError: when fio fails, takes too long, or its report cannot be read
        """
        command = [
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *("fio", f"--name={phase.name}", f"--filename={self._device}", *phase.arguments, *timed),
            *("--ioengine=libaio", "--direct=1", "--end_fsync=1", "--thread", "--output-format=json"),
        ]
        said = processes.run(command, f"fio, `{phase.name}`", seconds + _SPARE)
        try:
            (job,) = json.loads(said[said.index("{") :])["jobs"]
            return float(job[phase.direction][phase.figure])
        except (ValueError, KeyError, TypeError) as error:
            raise PeerError(f"fio, `{phase.name}`: its report cannot be read: {error}") from error
