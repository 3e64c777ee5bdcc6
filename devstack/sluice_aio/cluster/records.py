"""The records of running services, by which another command finds and stops them, whoever started them; one command
at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.processes import ProcessId, end_all
from sluice_aio.cinder import backends, konnector
from sluice_aio.cluster.components import WAVES
from sluice_aio.errors import LaunchError

#: Seconds until a service must end after SIGTERM.
STOP_LIMIT: Final = 15.0


@dataclass(frozen=True, slots=True)
class Record:
    """The processes of one service: the service itself first, then its child processes."""

    service: str
    port: int | None
    processes: tuple[ProcessId, ...]

    def alive(self) -> bool:
        """True while the service itself runs."""
        return self.processes[0].alive()


class Records:
    """The file in a cluster's folder with every process that the cluster started."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "processes.json"
        self._lock_file = folder / "lock"

    def load(self) -> dict[str, Record]:
        """Service → record, in the order in which they were started."""
        try:
            data = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise LaunchError(f"cannot read `{self._file}`: {error}") from error
        return {
            name: Record(name, one["port"], tuple(ProcessId(pid, started) for pid, started in one["processes"]))
            for name, one in data.items()
        }

    def save(self, records: Iterable[Record]) -> None:
        """Replace the file in one step."""
        data: Mapping[str, object] = {
            one.service: {"port": one.port, "processes": [(p.pid, p.started) for p in one.processes]} for one in records
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(data, indent=1), encoding="utf-8")
        fresh.replace(self._file)

    def lock(self) -> int:
        """Lock the folder for one command; the lock ends with the descriptor or the process.

        :raises LaunchError: if another command holds it
        """
        self._lock_file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LaunchError(f"another command is at work in `{self._lock_file.parent.parent}`") from None
        return descriptor


def stop_recorded(layout: Layout) -> list[str]:
    """Stop the cluster in the layout's folder, by its records; return the names of the running services."""
    records = Records(layout.run)
    with locked(records), uninterrupted():
        stopped = stop_all(records)
        konnector.release(layout)
        backends.release(layout)
        return stopped


def stop_all(records: Records) -> list[str]:
    """Stop all recorded services, wave by wave; return the names of those that ran."""
    known = records.load()
    running = [name for name, record in known.items() if record.alive()]
    for wave in reversed(WAVES):
        members = [known[name] for name in wave if name in known]
        end_all([record.processes[0] for record in members], STOP_LIMIT)
        end_all([helper for record in members for helper in record.processes[1:]], STOP_LIMIT)
    if known:
        records.save(())
    return running


@contextlib.contextmanager
def locked(records: Records) -> Iterator[None]:
    """One command at a time in one folder."""
    descriptor = records.lock()
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals until the context ends: a second Ctrl-C must not leave half a cluster."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
