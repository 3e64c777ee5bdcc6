"""The first process of a tenant's container: starts a daemon per storlet and ends when none is left.

``python3 -m sluice_sandbox.storlets.factory SOCKET IDLE CODE``; see ``agent`` for the differences from
Storlets' own factory, and their reasons.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, Final

from storlets.agent.common.server import EXIT_SUCCESS, CommandFailure, CommandSuccess, command_handler
from storlets.agent.daemon_factory.server import SDaemonError, StorletDaemonFactory

from sluice_sandbox.storlets import wire
from sluice_sandbox.storlets.agent import (
    PollingServer,
    close_others,
    die_with_parent,
    exit_now,
    kill_orphans,
    pop_ended,
    quiet_logger,
)
from sluice_sandbox.storlets.daemon import Daemon

#: Seconds for loading the code of a filter.
_LOADING: Final = 10.0


class Factory(PollingServer, StorletDaemonFactory):  # type: ignore[misc]
    """Storlets' factory; ``storlet_name`` is the daemon's name, ``storlet_main`` the class it runs."""

    def __init__(self, *args: Any, code: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._code = code
        self._worked: dict[int, float] = {}

    @command_handler  # type: ignore[untyped-decorator]
    def start_daemon(self, dtg: Any) -> Any:
        """Start a daemon; it is called when the daemon does not answer, so a running one lost its socket or hangs."""
        params = dtg.params
        name, language = params["storlet_name"], params["daemon_language"].lower()
        starters = {"java": self._start_java, "python": self._start_python}
        lost = self.storlet_name_to_pid.pop(name, None)
        if lost is not None:
            self._end(lost)
        if language not in starters:
            return CommandFailure(f"`{language}` is no language of storlets")
        self.storlet_name_to_pipe_name[name] = params["uds_path"]
        try:
            self.storlet_name_to_pid[name] = starters[language](params)
        except SDaemonError as error:
            return CommandFailure(str(error))
        return CommandSuccess("OK")

    def _start_java(self, params: dict[str, Any]) -> int:
        """Start Storlets' own daemon, and ping it until it listens.

        :raises SDaemonError: when Java is missing
        """
        names = ("daemon_language", "storlet_path", "storlet_main", "pool_size", "uds_path", "log_level")
        command, env = self.get_jvm_args(*(params[name] for name in names))
        if not os.access(command[0], os.X_OK):
            raise SDaemonError("this image has no Java")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(params["uds_path"])
        process = subprocess.Popen([command[0], *_JVM_OPTIONS, *command[1:]], env=env, stdin=subprocess.DEVNULL)
        self._worked[process.pid] = time.monotonic() + _LOADING
        return process.pid

    def _start_python(self, params: dict[str, Any]) -> int:
        """Fork a daemon from this process; return as soon as it listens.

        :raises SDaemonError: when the filter cannot be loaded
        """
        folder = f"{self._code}/{params['storlet_name']}"
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError as error:  # code in the container forked until no process was left
            os.close(reader)
            os.close(writer)
            raise SDaemonError(wire.NO_PROCESSES) from error
        if pid == 0:
            os.close(reader)
            _be_daemon(writer, folder, params["storlet_main"], params["uds_path"], params["pool_size"], self.idle)
        os.close(writer)
        try:
            ready, _, _ = select.select([reader], [], [], _LOADING)
            answer = os.read(reader, 1000) if ready else b"it takes too long"
        finally:
            os.close(reader)
        if answer != b"+":
            self._end(pid)
            raise SDaemonError(f"cannot be loaded: {answer.decode(errors='replace') or 'it ended'}")
        return pid

    def _end(self, pid: int) -> None:
        """Kill a daemon and its remaining processes."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        kill_orphans(set(self.storlet_name_to_pid.values()))

    def after_event(self) -> None:
        for pid in pop_ended(self.storlet_name_to_pid):
            self._worked.pop(pid, None)
        self._end_idle_java()
        kill_orphans(set(self.storlet_name_to_pid.values()))

    def _end_idle_java(self) -> None:
        """End idle Java daemons, which do not end by themselves; a present run is recognised by its pipes."""
        now = time.monotonic()
        for pid, worked in list(self._worked.items()):
            if _has_pipes(pid):
                self._worked[pid] = now
            elif now - worked > self.idle:
                del self._worked[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def has_work(self) -> bool:
        return bool(self.storlet_name_to_pid)

    def shut_down(self) -> None:
        for pid in self.storlet_name_to_pid.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _has_pipes(pid: int) -> bool:
    """Whether a process has pipes open besides its standard descriptors."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if int(name) > 2 and os.readlink(f"/proc/{pid}/fd/{name}").startswith("pipe:"):
                    return True
    return False


_JVM_OPTIONS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xss512k")


def _be_daemon(ready: int, folder: str, main: str, path: str, pool: int, idle: float) -> None:
    """Run a daemon in the child process; does not return."""
    status = 1
    try:
        os.setpgid(0, 0)
        die_with_parent()
        signal.set_wakeup_fd(-1)
        close_others(ready)
        sys.path.insert(0, folder)
        try:
            daemon = Daemon(main, path, quiet_logger(), pool, idle=idle)
        except BaseException as error:  # loading runs uploaded code
            cause = error.__cause__ or error.__context__ or error
            os.write(ready, type(cause).__name__.encode())
            raise
        status = daemon.main_loop(ready)
    finally:
        exit_now(status)


def main() -> None:
    """Serve until no daemon is left."""
    path, idle, code = sys.argv[1:]
    factory = Factory(path, quiet_logger(), "sluice", idle=float(idle), code=code)
    sys.exit(EXIT_SUCCESS if factory.main_loop() == 0 else 1)


if __name__ == "__main__":
    main()
