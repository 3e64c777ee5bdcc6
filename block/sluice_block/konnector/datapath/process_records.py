"""Which processes are ours: found again by pid and start time.

A pid that the kernel gave to another process since has another start time, so that no stranger is ever taken for ours,
waited for or ended.  All waiting is on pid file descriptors (pidfd_open(2)), which work for children of an earlier
konnector, too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message

R = TypeVar("R", bound=Message)

#: Seconds between SIGTERM and SIGKILL of a process that does not end.
PATIENCE: Final = 10.0


@cache
def boot_id() -> str:
    """What tells this boot of the machine from every other."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class ProcessRecord(Message):
    """One process; ``started`` is its start time in clock ticks since the boot ``boot``."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessRecord:
        """
        :raises ProcessLookupError: when there is no such process
        """
        return cls(pid, _stat(pid)[1], boot_id())

    def is_alive(self) -> bool:
        """Whether this very process runs."""
        try:
            state, started = _stat(self.pid)
        except ProcessLookupError:
            return False
        return state not in "ZX" and started == self.started and self.boot == boot_id()

    def open(self) -> int | None:
        """A pid file descriptor, which becomes readable when the process ends; None when it has."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.is_alive():  # looked at after the descriptor was opened, so that it is the one meant
            return descriptor
        os.close(descriptor)
        return None

    def wait(self, seconds: float) -> bool:
        """Wait until the process has ended; False when it runs still after ``seconds``."""
        with _opened(self) as descriptor:
            if descriptor is not None and not _readable(descriptor, seconds):
                return False
        reap(self.pid)
        return True

    def terminate(self) -> None:
        """Send SIGTERM, and do not wait."""
        with _opened(self) as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)

    def end(self, patience: float = PATIENCE) -> None:
        """Send SIGTERM, after ``patience`` seconds SIGKILL, and wait until the process has ended.

        :param patience: 0 is SIGKILL alone; after SIGTERM a server may answer with errors before SIGKILL comes
        :raises PeerError: when the kernel does not let it end (it waits for a device)
        """
        with _opened(self) as descriptor:
            if descriptor is None:
                return
            asked = ((signal.SIGTERM, patience),) if patience else ()
            for number, seconds in (*asked, (signal.SIGKILL, PATIENCE)):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
                if _readable(descriptor, seconds):
                    reap(self.pid)
                    return
        raise PeerError(f"process `{self.pid}` does not end")


def write_record(path: Path, record: Message) -> None:
    """Keep the record of a process at ``path``."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(record.encode())
    fresh.replace(path)


def read_record(path: Path, kind: type[R]) -> R | None:
    """The record at ``path``; None when there is none that can be read."""
    try:
        return kind.decode(path.read_bytes())
    except (FileNotFoundError, DecodeError):
        return None


def read_living(path: Path) -> ProcessRecord | None:
    """The process whose record is at ``path``; None when it does not run."""
    record = read_record(path, ProcessRecord)
    return record if record is not None and record.is_alive() else None


def end_recorded(path: Path, patience: float = PATIENCE) -> None:
    """End the process whose record is at ``path``, and forget it.

    :raises PeerError: when it does not end
    """
    record = read_record(path, ProcessRecord)
    if record is not None:
        record.end(patience)
    path.unlink(missing_ok=True)


def reap(pid: int) -> None:
    """Take the exit status of ``pid`` when it is a child of ours, so that it does not stay as a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _stat(pid: int) -> tuple[str, int]:
    """State and start time of a process: fields 3 and 22 of /proc/<pid>/stat (proc(5)).

    :raises ProcessLookupError: when there is no such process
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(pid) from error
    fields = text.rpartition(")")[2].split()  # the name in field 2 may hold spaces and parentheses
    return fields[0], int(fields[19])


@contextlib.contextmanager
def _opened(record: ProcessRecord) -> Iterator[int | None]:
    descriptor = record.open()
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(int(seconds * 1000)))
