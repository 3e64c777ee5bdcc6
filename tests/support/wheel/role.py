"""A role of Sluice in an environment of its own, into which a wheel was installed, and the programs that it runs."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The tool that makes the environments: it installs out of a cache that it keeps.
UV: Final = Path(sys.executable).with_name("uv")
#: Seconds for an installation, and for a program to say what it was asked.
_INSTALLING: Final = 900
#: Seconds for a daemon to become ready, and to end.
_PATIENCE: Final = 60.0
#: Seconds for one to end after a test of it has failed.
_GRACE: Final = 10.0


@dataclass(frozen=True)
class Servers:
    """Where Redis and RabbitMQ are."""

    redis: str
    amqp: str


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a program prints; it must end with status 0."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=_INSTALLING,
        check=False,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


class Daemon:
    """A program that runs, heard as a service manager hears it.

    :param log: what it writes
    :param manager: the socket on which it says that it is ready
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, manager: socket.socket) -> None:
        self.process = process
        self.log = log
        self._manager = manager

    def wait_ready(self) -> None:
        """Return when it has said so; it must not have ended before."""
        end = time.monotonic() + _PATIENCE
        ended = os.pidfd_open(self.process.pid)
        try:
            while True:
                heard, _, _ = select.select([self._manager, ended], [], [], max(0.0, end - time.monotonic()))
                if self._manager in heard and b"READY=1" in self._manager.recv(4096).split(b"\n"):
                    return
                assert ended not in heard, f"it has ended: {self.log.read_text()}"
                assert heard, f"not ready after {_PATIENCE:g} s: {self.log.read_text()}"
        finally:
            os.close(ended)

    def stop(self) -> None:
        """Ask it to end; it must do so in order."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it has not ended after {_PATIENCE:g} s: {self.log.read_text()}") from error
        assert status == 0, f"status {status}: {self.log.read_text()}"

    def end(self) -> None:
        """End what is left of it, with its workers; it may have to unmount something first."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_GRACE)
        with contextlib.suppress(ProcessLookupError):  # its group has ended
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Role:
    """An environment in ``folder`` with the role that ``extras`` bring."""

    def __init__(self, extras: str, folder: Path) -> None:
        self.extras = extras
        self.folder = folder

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    def install(self, wheel: Path, constraints: Path, beside: Sequence[str] = (), borrowed: Sequence[str] = ()) -> None:
        """Make the environment.

        :param beside: what an operator has there before Sluice
        :param borrowed: packages that are taken from this environment, since they take minutes to install
        """
        run(UV, "venv", "--quiet", "--python", sys.executable, self.folder)
        wanted = f"openstack-sluice[{self.extras}] @ {wheel.as_uri()}"
        left_out = self.folder / "left-out.txt"
        left_out.write_text("".join(f"{name}; python_version < '3'\n" for name in borrowed))
        options = ("--quiet", "--python", self.python, "--constraint", constraints, "--override", left_out)
        run(UV, "pip", "install", *options, wanted, *beside)
        self._borrow(borrowed)

    def _borrow(self, names: Sequence[str]) -> None:
        """Let its programs import packages of this environment, and nothing else of it."""
        theirs, folder = Path(sysconfig.get_path("purelib")), self.folder / "borrowed"
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(theirs / name)
        (packages,) = self.folder.glob("lib/python3*/site-packages")
        (packages / "borrowed.pth").write_text(f"{folder}\n")

    def remove(self) -> None:
        """Take the environment away, with all that its programs wrote into it."""
        shutil.rmtree(self.folder)

    def run(self, name: str, *words: str | Path) -> str:
        """What a program prints, outside of the clone, with no path but its own environment's."""
        return run(self.folder / "bin" / name, *words, cwd=self.folder, env=self._environment())

    @contextlib.contextmanager
    def running(self, name: str, *words: str | Path) -> Iterator[Daemon]:
        """A program that runs, and is asked to end at the end."""
        log = self.folder / f"{len(list(self.folder.glob('*.log')))}-{name}.log"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, log.open("wb") as out:
            manager.bind("")  # an abstract address that Linux chooses
            address = "@" + manager.getsockname()[1:].decode("ascii")
            process = subprocess.Popen(
                [self.folder / "bin" / name, *words],
                cwd=self.folder,
                env={**self._environment(), "NOTIFY_SOCKET": address},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Swift's servers send signals to their whole group
            )
            daemon = Daemon(process, log, manager)
            try:
                yield daemon
                daemon.stop()
            finally:
                daemon.end()

    def _environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder / 'bin'}:{os.defpath}", "HOME": str(self.folder), "LANG": "C.UTF-8"}
