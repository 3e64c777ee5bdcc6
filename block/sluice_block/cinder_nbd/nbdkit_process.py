"""The nbdkit process of one export: started as a daemon, found again by its pid file, paused and ended.

A pid file may name another process: after a reboot, or when the pid was reused.  So the process must also have this pid
file on its command line, which no other process has.  It has a session of its own, and does not end with its starter.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_block.cinder_nbd.pools import Run

#: Seconds for its start.
_START_LIMIT: Final = 20.0
#: Seconds for its end, which it delays while a client is connected.  A later SIGKILL loses no data: what it answered is
#: in the file.
_TERM_LIMIT: Final = 1.0
_KILL_LIMIT: Final = 10.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class NbdkitProcess:
    """The nbdkit with ``pid_file``; at most one runs."""

    pid_file: Path

    def start(self, arguments: Sequence[str], run: Run) -> None:
        """Start it and wait until it serves.

        :raises OSError: when it does not, with its output
        """
        self.pid_file.unlink(missing_ok=True)
        run(["setsid", "nbdkit", self._option(), *arguments])
        # it writes its pid when it listens, in the background
        deadline = time.monotonic() + _START_LIMIT
        while self.pid() is None:
            if time.monotonic() > deadline:
                raise OSError(f"nbdkit does not serve after {_START_LIMIT:g} s, see the system's log")
            time.sleep(_POLL_SECONDS)

    def pid(self) -> int | None:
        """The process id; None when the process does not run."""
        try:
            pid = int(self.pid_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):  # absent, or not written yet
            return None
        return pid if self._is_ours(pid) else None

    def pause(self) -> None:
        """Stop the process until :meth:`resume`; it does not write to the file meanwhile."""
        pid = self.pid()
        if pid is not None and self._signal(signal.SIGSTOP):
            while _running_threads(pid):
                time.sleep(_POLL_SECONDS)

    def resume(self) -> None:
        """End a pause; do nothing without one."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """End the process, paused or not, and return when it has ended."""
        for number, limit in ((signal.SIGTERM, _TERM_LIMIT), (signal.SIGKILL, _KILL_LIMIT)):
            self._signal(number)
            self.resume()
            deadline = time.monotonic() + limit
            while self.pid() is not None and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        if self.pid() is not None:
            raise OSError(f"nbdkit of `{self.pid_file}` does not end")
        self.pid_file.unlink(missing_ok=True)

    def _option(self) -> str:
        return f"--pidfile={self.pid_file}"

    def _is_ours(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        # that of a zombie is empty
        return os.fsencode(self._option()) in words

    def _signal(self, number: int) -> bool:
        """Send signal ``number``; return False when the process has ended."""
        pid = self.pid()
        if pid is None:
            return False
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if not self._is_ours(pid):  # checked again now that the pid cannot be reused
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def _running_threads(pid: int) -> bool:
    """Whether a thread of the process still runs: a thread in a system call stops at its end."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            state = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "TZX":
            return True
    return False
