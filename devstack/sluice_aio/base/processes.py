"""Ends processes without signalling an unrelated one.

Rules of this file:

* Every service is the leader of its own session.  A Swift parent signals its whole process group
  when it gets SIGTERM, so it ends only its own workers with it.
* A process is identified by its pid *and* its start time (``/proc/<pid>/stat``): a pid that the kernel
  has reused belongs to another process.
* Signals go through a pidfd that was opened before the start time was compared, so the kernel
  cannot reuse the pid in between.
* The remaining processes of a service's session are killed after its leader ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

#: Fields of /proc/<pid>/stat, counted after the command's name in parentheses.
_STATE, _SESSION, _STARTED = 0, 3, 19


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process, uniquely: ``started`` is in clock ticks since the machine's boot."""

    pid: int
    started: int

    @classmethod
    def find(cls, pid: int) -> Self | None:
        """The process that has ``pid`` now, or None if there is none."""
        stat = _stat(pid)
        return None if stat is None else cls(pid, int(stat[_STARTED]))

    def alive(self) -> bool:
        """True while it runs; a zombie does not."""
        stat = _stat(self.pid)
        return stat is not None and int(stat[_STARTED]) == self.started and stat[_STATE] not in "ZX"

    @contextlib.contextmanager
    def _handle(self) -> Iterator[int | None]:
        """A pidfd of exactly this process, None if it has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield handle if self.alive() else None
        finally:
            os.close(handle)

    def signal(self, number: int) -> bool:
        """Send ``number``; return False if the process has ended."""
        with self._handle() as handle:
            if handle is None:
                return False
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                return False
            return True

    def wait(self, limit: float) -> bool:
        """Wait at most ``limit`` seconds for its end; return True if it ended."""
        with self._handle() as handle:
            if handle is None:
                return True
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return bool(poll.poll(limit * 1000))

    def session(self) -> list[ProcessId]:
        """All live processes of the session that this process leads (or led).

        The kernel gives no new process the number of a session that still has members.  If another
        process has this pid, the session is therefore empty.
        """
        now = ProcessId.find(self.pid)
        if now is not None and now != self:
            return []
        members = []
        for entry in os.listdir("/proc"):
            stat = _stat(int(entry)) if entry.isdecimal() else None
            if stat is not None and int(stat[_SESSION]) == self.pid and int(stat[_STARTED]) >= self.started:
                members.append(ProcessId(int(entry), int(stat[_STARTED])))
        return [member for member in members if member.alive()]

    def end(self, limit: float) -> bool:
        """Send SIGTERM, then after ``limit`` seconds SIGKILL, to it and to the rest of its session.

        Return True if it ended without SIGKILL to the leader.
        """
        self.signal(signal.SIGTERM)
        gently = self.wait(limit)
        for _ in range(50):  # a process that ends may still fork
            members = self.session()
            if not members:
                break
            for member in members:
                member.signal(signal.SIGKILL)
            for member in members:
                member.wait(1.0)
        return gently


def end_all(processes: Iterable[ProcessId], limit: float) -> None:
    """End several processes and their sessions, and wait for all of them together."""
    asked = list(processes)
    for process in asked:
        process.signal(signal.SIGTERM)
    for process in asked:
        process.end(limit)
