"""Runs one Python storlet inside a container: a process per run, forked from a daemon that has loaded it.

See ``agent`` for the differences from Storlets' own daemon, and their reasons.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import time
from collections import deque
from typing import Any, Final

from storlets.agent.common.server import CommandSuccess, command_handler
from storlets.agent.daemon.files import StorletInputFile, StorletLogger, StorletOutputFile
from storlets.agent.daemon.server import StorletDaemon

from sluice_sandbox.storlets import wire
from sluice_sandbox.storlets.agent import (
    START,
    PollingServer,
    close_others,
    die_with_parent,
    exit_now,
    kill_orphans,
    pop_ended,
    trailer,
)

_LOG_LIMIT: Final = 16 * 1024
_WAITING: Final = 64
_FORK_PATIENCE: Final = 2.0


class CountedInput(StorletInputFile):  # type: ignore[misc]
    """Counts the bytes that a storlet reads; None when it uses the descriptor directly."""

    def __init__(self, metadata: dict[str, str], descriptor: int) -> None:
        super().__init__(metadata, descriptor)
        self.taken: int | None = 0

    def fileno(self) -> int:
        """Return the descriptor; bytes that a storlet reads through it are not counted."""
        self.taken = None
        return super().fileno()  # type: ignore[no-any-return]

    def _read(self, size: int = -1) -> bytes:
        data: bytes = super()._read(size)
        if self.taken is not None:
            self.taken += len(data)
        return data


class CountedOutput(StorletOutputFile):  # type: ignore[misc]
    """Counts the bytes that a storlet writes; None when it uses the descriptor directly.

    The metadata is discarded, so a storlet need not set any before it writes.
    """

    def __init__(self, metadata: int, descriptor: int) -> None:
        super().__init__(metadata, descriptor)
        self.given: int | None = 0

    def fileno(self) -> int:
        """Return the descriptor; bytes that a storlet writes through it are not counted."""
        self.given = None
        return super().fileno()  # type: ignore[no-any-return]

    def write(self, data: bytes) -> None:
        """Write and count, with or without preceding metadata."""
        self.md_file.close()
        self.obj_file.write(data)
        if self.given is not None:
            self.given += len(data)

    def writelines(self, lines: Any) -> None:
        """Write and count each of ``lines``."""
        for line in lines:
            self.write(line)


class PipeLogger(StorletLogger):  # type: ignore[misc]
    """The logger of a storlet: some kilobytes of text, which may remain unread.

    The descriptor stays that of the daemon, which writes the end of the run to it: no file is opened over it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._left = _LOG_LIMIT

    def _emit_log(self, level: str, text: object) -> None:
        line = f"{level}: {text}\n".encode(errors="replace").replace(b"\0", b"?")[: self._left]
        self._left -= len(line)
        if line:
            os.write(self._descriptor, line)

    exception = StorletLogger.error


class Daemon(PollingServer, StorletDaemon):  # type: ignore[misc]
    """Storlets' daemon for one Python class; at most ``pool_size`` runs at once, later ones wait."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: deque[Any] = deque()
        self._since: float | None = None
        gc.freeze()  # memory that is loaded now is never written by the garbage collector of a run

    @command_handler  # type: ignore[untyped-decorator]
    def execute(self, dtg: Any) -> Any:
        """Start a run, or queue it; its end is reported on its status pipe, not by the answer."""
        if len(self._waiting) < _WAITING:
            self._waiting.append(dtg)
            self._start_waiting()
        else:
            _refuse(dtg, "too many runs at once")
        return CommandSuccess("OK", task_id=dtg.task_id)

    @command_handler  # type: ignore[untyped-decorator]
    def cancel(self, dtg: Any) -> Any:
        """Cancel a run and kill its remaining processes, or remove it from the queue."""
        pid = self.task_id_to_pid.pop(dtg.task_id, None)
        if pid is not None:
            self._clear_up(pid)
        for waiting in [one for one in self._waiting if one.task_id == dtg.task_id]:
            self._waiting.remove(waiting)
            _refuse(waiting, "cancelled")
        return CommandSuccess("OK")

    def after_event(self) -> None:
        for pid in pop_ended(self.task_id_to_pid):
            self._clear_up(pid)
        self._start_waiting()

    def has_work(self) -> bool:
        return bool(self.task_id_to_pid or self._waiting)

    def retries_soon(self) -> bool:
        return self._since is not None

    def shut_down(self) -> None:
        for pid in list(self.task_id_to_pid.values()):
            self._clear_up(pid)

    def _clear_up(self, session: int) -> None:
        """Kill all processes of the run whose first process is ``session``."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(session, 0)
        kill_orphans(set(self.task_id_to_pid.values()))

    def _start_waiting(self) -> None:
        """Start queued runs; without free processes (a fork bomb in the container) repeat for a while."""
        while self._waiting and len(self.task_id_to_pid) < self.pool_size:
            if self._start(self._waiting[0]):
                self._waiting.popleft()
                self._since = None
                continue
            if self._since is None:
                self._since = time.monotonic()
            if time.monotonic() - self._since > _FORK_PATIENCE:
                self._since = None
                _refuse(self._waiting.popleft(), wire.NO_PROCESSES)
            return

    def _start(self, dtg: Any) -> bool:
        """Fork a process for a run; return False when no process is available."""
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                self._run(dtg)
            finally:
                exit_now(1)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # the child makes itself a session; parent or child may be first
        self.task_id_to_pid[dtg.task_id] = pid
        _close(dtg)
        return True

    def _run(self, dtg: Any) -> None:
        """In the child: run the storlet up to its verified end."""
        status = dtg.logger_out_fd
        close_others(*dtg.invocation_fds)
        confine(dtg.object_in_storlet_metadata[0])
        os.write(status, START)
        source = CountedInput(dtg.object_in_metadata[0], dtg.object_in_fds[0])
        target = CountedOutput(dtg.object_metadata_out_fds[0], dtg.object_out_fds[0])
        try:
            self.storlet_cls(PipeLogger(status))([source], [target], dtg.params)
            target.close()
            end = trailer(True, "", source.taken, target.given)
        except BaseException as error:  # noqa: BLE001  # whatever the code of a stranger raises, SystemExit too
            end = trailer(False, f"it raised {type(error).__name__}")
        os.write(status, end)
        exit_now(0)


def confine(limits: dict[str, str]) -> None:
    """Make this process a session of its own, with limits, and the first to be killed when memory runs out."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent()
    with contextlib.suppress(PermissionError):
        os.setsid()
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    for kind, name in ((resource.RLIMIT_CPU, "cpu"), (resource.RLIMIT_DATA, "memory")):
        if name in limits:
            value = int(limits[name])
            resource.setrlimit(kind, (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _refuse(dtg: Any, why: str) -> None:
    """Report that the run ``dtg`` is refused."""
    with contextlib.suppress(OSError):
        os.write(dtg.logger_out_fd, START + trailer(False, why))
    _close(dtg)


def _close(dtg: Any) -> None:
    for descriptor in dtg.invocation_fds:
        os.close(descriptor)
