"""A separate Docker engine: dockerd as a child process, beside any other engine of the machine.

All of its data is in one folder, it listens on one unix socket, and it makes no network: no bridge, no firewall rules,
no forwarding, since the containers here have no network.  Stopping it stops its containers and its containerd.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final, Self

from sluice_core.errors import CallerError, PeerError

_POLL: Final = 0.05
#: Seconds for its start, and for stopping its containers and itself.
_PATIENCE: Final = 60.0
_STOPPING: Final = 20.0
#: Longest path of a unix socket, its end included.
_PATH_LIMIT: Final = 108
#: What the engine appends to its folders for the sockets of containerd.
_DEEPEST: Final = "run/containerd/containerd.sock.ttrpc"


class DockerEngine:
    """dockerd with everything in ``folder``; also a context manager that starts, waits and stops.

    ``url`` is the clients' ``DOCKER_HOST``.  The engine writes ``pid_file``, by which a later process
    finds and stops it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.url = f"unix://{self.folder / 'docker.sock'}"
        self.log = self.folder / "dockerd.log"
        self.pid_file = self.folder / "dockerd.pid"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the engine of this folder, whichever process started it; None without a running one."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        pid = _pid_in(self.pid_file)
        return pid if pid is not None and _command_of(pid) == "dockerd" else None

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self.pid is not None

    def argv(self) -> list[str]:
        """The command line."""
        program = shutil.which("dockerd", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")
        options = {
            "data-root": self.folder / "data",
            "exec-root": self.folder / "run",
            "pidfile": self.pid_file,
            "host": self.url,
            "iptables": "false",
            "ip-forward": "false",
            "ip-masq": "false",
            "bridge": "none",
            "userland-proxy": "false",
            "log-level": "warn",
            "shutdown-timeout": "3",
        }
        return [program or "dockerd", *(f"--{name}={value}" for name, value in options.items())]

    def start(self) -> None:
        """Start the process, unless it runs; :meth:`wait_ready` waits until it serves.

        :raises CallerError: when the folder's path is too long for unix sockets
        :raises PeerError: when dockerd is not installed
        """
        deepest = self.folder / _DEEPEST
        if len(os.fsencode(deepest)) >= _PATH_LIMIT:
            raise CallerError(f"folder `{self.folder}` is too long for the engine's sockets, expected at most 70 bytes")
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        self._end_containerd()
        argv = self.argv()
        with open(self.log, "ab") as log:
            try:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                raise PeerError(f"cannot start `{argv[0]}`: {os.strerror(error.errno or 0).lower()}") from error

    def answers(self) -> bool:
        """Whether it serves."""
        from sluice_sandbox.docker.client import docker_client  # 0.1 s, which the other commands need not wait

        try:
            with docker_client(self.url, 2.0) as client:
                return bool(client.ping())
        except PeerError:
            return False

    def wait_ready(self) -> None:
        """Wait until the engine serves.

        :raises PeerError: when it ends, or does not serve within a minute
        """
        deadline = time.monotonic() + _PATIENCE
        while not self.answers():
            if self._process is not None and self._process.poll() is not None:
                raise PeerError(f"dockerd ended instead of serving: {self._tail()}")
            if time.monotonic() > deadline:
                raise PeerError(f"dockerd does not serve on `{self.url}` after {_PATIENCE:g} s: {self._tail()}")
            time.sleep(_POLL)

    def stop(self) -> None:
        """Send SIGTERM, which stops its containers too; after twenty seconds SIGKILL.

        A killed engine leaves its containers running; only an engine can remove them, so it is started once more.  Then
        the remaining mounts in the folder are unmounted, since no other process does that.
        """
        if not self.running and self.pid_file.exists():
            with contextlib.suppress(PeerError):
                self.start()
                self.wait_ready()
        number, deadline = signal.SIGTERM, time.monotonic()
        while (pid := self.pid) is not None:
            if time.monotonic() >= deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                number, deadline = signal.SIGKILL, deadline + _STOPPING
            time.sleep(_POLL)
        self._end_containerd()
        for place in reversed(self._mounted()):
            subprocess.run(["umount", place], stdin=subprocess.DEVNULL, capture_output=True, check=False)

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

    def _end_containerd(self) -> None:
        """End the containerd of a killed engine, or delete its record: the next engine would wait for it."""
        pid_file = self.folder / "run/containerd/containerd.pid"
        pid = _pid_in(pid_file)
        while pid is not None and _command_of(pid) == "containerd":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL)
        pid_file.unlink(missing_ok=True)

    def _mounted(self) -> list[str]:
        """The mount points in the engine's folder, in the order in which they were mounted."""
        places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        return [place for place in places if place.startswith(f"{self.folder}/")]

    def _tail(self) -> str:
        try:
            return self.log.read_bytes()[-2000:].decode("utf-8", "replace")
        except OSError:
            return ""


def _pid_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _command_of(pid: int) -> str:
    """Name of the running process ``pid``; empty when there is none, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    name, _, rest = fields.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name
