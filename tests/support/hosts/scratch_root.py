"""A root of its own for a test: a copy of this machine's view, written to memory, removed with its namespaces.

Only root can create one.  Inside, ``systemctl`` is the tests' (``systemctl.py``), since no systemd runs there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
#: Seconds that one command may take, on a busy machine.
PATIENCE: Final = 900.0


class ScratchRoot:
    """``with ScratchRoot(folder, "host", setup) as root: root.run("id")``.

    :param name: its host name
    :param setup: a script that ``enter.sh`` reads
    :param shown: files and folders of this machine that exist there, too, even if they are on other file systems
    """

    def __init__(self, folder: Path, name: str, setup: Path, shown: Iterable[Path] = ()) -> None:
        self._folder = folder
        self._setup = setup
        self._shown = {Path(sys.prefix), Path(sys.base_prefix), *shown}
        self._process: subprocess.Popen[str] | None = None
        self.name = name
        #: Number of its first process, as this machine counts.
        self.init = 0

    def start(self) -> None:
        """Create it.

        :raises PermissionError: for users other than root
        :raises RuntimeError: when it cannot be created
        """
        if os.geteuid():
            raise PermissionError("only root can make namespaces and mounts: run this test as root")
        (self._folder / "layers").mkdir(parents=True, exist_ok=True)
        command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"]
        command += [str(HERE / "enter.sh"), str(self._folder), self.name, sys.executable, str(self._setup)]
        # folders on another file system are shown with it
        command += [str(path) for path in sorted(self._shown) if self._shown.isdisjoint(path.parents)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if said != "ready\n":
            self.stop()
            raise RuntimeError(f"no scratch root: enter.sh printed `{said.strip()}`, expected `ready`")
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        self.init = int(children.read_text().split()[0])

    def stop(self) -> None:
        """Stop it with all its processes, like a power cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def __enter__(self) -> ScratchRoot:
        self.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self.stop()

    def run(self, *command: str, user: str = "root", **environment: str) -> str:
        """The output of ``command``, run by ``user``.

        :raises AssertionError: when it fails
        """
        ended = self.enter(user, command, environment)
        assert ended.returncode == 0, f"{command} on {self.name}: {ended.stdout[-4000:]}"
        return ended.stdout

    def processes(self) -> dict[int, tuple[str, list[str]]]:
        """Number of each process in the root → its user and its command line, without ended ones."""
        lines = self.run("ps", "-eo", "pid=,user:32=,args=").splitlines()
        rows = [line.split() for line in lines if "<defunct>" not in line]
        return {int(row[0]): (row[1], row[2:]) for row in rows}

    def enter(
        self, user: str, command: Iterable[str], environment: Mapping[str, str], text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run ``command`` as ``user`` with ``text`` as its input."""
        home = "/root" if user == "root" else f"/home/{user}"
        settings = {"PATH": self.path(), "HOME": home, "USER": user, **environment}
        enter = ["nsenter", "--target", str(self.init), "--mount", "--pid", "--net", "--uts", "--ipc", "--root"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        given = [f"{name}={value}" for name, value in settings.items()]
        return subprocess.run(
            [*enter, "/usr/bin/env", "-i", "--chdir=/", *given, *become, *command],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def path(self) -> str:
        """The search path of programs."""
        return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
