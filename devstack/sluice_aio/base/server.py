"""Servers as child processes: start, wait, stop, kill.

Used by the launcher and by tests.  Each server keeps everything (data, log, settings) in a folder of its own, listens
on 127.0.0.1 only and is identified by its process id; other installations on the same machine are neither read nor
changed.  With ``tied=True`` the kernel kills the server when the *thread* that started it ends, so an aborted test run
leaves no process; start a tied server in the main thread, not through ``asyncio.to_thread``.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from sluice_core.errors import PeerError

_POLL_SECONDS: Final = 0.05


class Child:
    """One child process: never a shell, identified by its id, with its output in a log file."""

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None, tied: bool = False):
        self.argv = list(argv)
        self.log = log
        self.env = env
        self.tied = tied
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, also after its end; None before the first start."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """True while the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs already.

        :raises PeerError: if the program is not installed
        """
        if self.running:
            return
        argv = ["setpriv", "--pdeathsig", "KILL", "--", *self.argv] if self.tied else self.argv
        with open(self.log, "ab") as log:
            try:
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=None if self.env is None else dict(self.env),
                    start_new_session=True,  # Ctrl-C is for the parent process, which stops this one in order
                )
            except OSError as error:
                raise PeerError(f"cannot start `{argv[0]}`: {error.strerror}") from error

    def stop(self, timeout: float = 10.0) -> None:
        """Send SIGTERM, and SIGKILL if it still runs after ``timeout`` seconds."""
        if self._process is None:
            return
        if self.running:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL, and wait for its end."""
        if self._process is None:
            return
        if self.running:
            self._process.kill()
        self._process.wait()

    def tail(self, size: int = 2000) -> str:
        """The end of its log, for error messages."""
        try:
            return self.log.read_bytes()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""


class Server:
    """The common part of all servers: start, wait until it answers, stop, kill, start again.

    Also a context manager that starts, waits and stops.
    """

    name = ""
    patience = 30.0

    def __init__(self, port: int, folder: str | Path, tied: bool = False) -> None:
        self.port = port
        self.folder = Path(folder)
        self.tied = tied
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the server; None before the first start."""
        return None if self._child is None else self._child.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of all processes that were started for this server, in the order in which they are stopped."""
        return () if self.pid is None else (self.pid,)

    @property
    def running(self) -> bool:
        """True while its process lives."""
        return self._child is not None and self._child.running

    @property
    def log(self) -> Path:
        """The log file."""
        return self.folder / f"{self.name}.log"

    def argv(self) -> list[str]:
        """The command line."""
        raise NotImplementedError

    def env(self) -> dict[str, str] | None:
        """The environment; None means ours."""
        return None

    def answers(self) -> bool:
        """True when the server serves."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the process; :meth:`wait_ready` says when it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._child is None or not self._child.running:
            self._child = Child(self.argv(), self.log, self.env(), self.tied)
            self._child.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Return as soon as the server serves.

        :raises PeerError: if it ended, or does not serve within ``timeout`` seconds
        """
        limit = self.patience if timeout is None else timeout
        deadline = time.monotonic() + limit
        while not self.answers():
            if not self.running:
                raise PeerError(f"{self.name} ended instead of serving: {self._tail()}")
            if time.monotonic() > deadline:
                raise PeerError(f"{self.name} does not serve on port {self.port} after {limit:g} s: {self._tail()}")
            time.sleep(_POLL_SECONDS)

    def stop(self, timeout: float = 20.0) -> None:
        """Send SIGTERM, after ``timeout`` seconds SIGKILL; no process of this server remains."""
        if self._child is not None:
            self._child.stop(timeout)

    def kill(self) -> None:
        """Send SIGKILL, as a fault would; data stay, and :meth:`start` starts it again."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        """Stop, start and wait."""
        self.stop()
        self.start()
        self.wait_ready()

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _tail(self) -> str:
        return "never started" if self._child is None else self._child.tail()
