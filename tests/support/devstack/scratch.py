"""A scratch root in which DevStack's phases run: namespaces of its own, Keystone, Swift, Redis and RabbitMQ for real.

The root looks like this machine and is writable in memory alone, its network is loopback, its processes end with it.
DevStack's library lies at ``/opt/stack/devstack``, the clone at ``/opt/stack/sluice``.  Only root can make such a root;
inside, everything runs as the user ``stack``, who becomes root by ``sudo``.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.swift_suite import source as swift_source

from sluice_aio.keystone import venv
from sluice_sandbox.files import cache_folder

HERE: Final = Path(__file__).parent
CLONE: Final = HERE.parents[2]
#: Seconds that one run of a mode may take, on a machine that is busy.
PATIENCE: Final = 900.0

_LOCAL_CONF: Final = """\
[[local|localrc]]
OFFLINE=True
DATABASE_TYPE=none
HOST_IP=127.0.0.1
SERVICE_HOST=127.0.0.1
SERVICE_LISTEN_ADDRESS=127.0.0.1
ADMIN_PASSWORD={admin}
SERVICE_PASSWORD={service}
RABBIT_PASSWORD={rabbit}
SWIFT_HASH={swift}
SWIFT_START_ALL_SERVICES=False
API_WORKERS=2
SERVICE_TIMEOUT=180
ENABLED_SERVICES=key,rabbit,horizon,c-api,c-vol
DEVSTACK_VENV={environment}
KEYSTONE_PYTHON={keystone}
KEYSTONE_PROGRAM=/opt/stack/sluice/devstack/sluice_aio/keystone/keystone_program.py
enable_plugin sluice /opt/stack/sluice

[[post-config|$SLUICE_API_CONF]]
[api]
log_level = debug
"""


def find_library() -> Path:
    """DevStack's own function library, which ``DEVSTACK_DIR`` names; by default beside the clone.

    :raises FileNotFoundError: when it is not there
    """
    found = Path(os.environ.get("DEVSTACK_DIR") or CLONE.parent / "shared" / "devstack").resolve()
    if not (found / "functions-common").is_file():
        raise FileNotFoundError(f"no DevStack in `{found}`, expected its clone; DEVSTACK_DIR names another folder")
    return found


class ScratchRoot:
    """``with ScratchRoot(folder) as root: root.stack("stack")``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: ``/opt/stack`` of the root.
        self.stack_dir = folder / "stack"
        self._process: subprocess.Popen[str] | None = None
        self._init = 0

    def __enter__(self) -> ScratchRoot:
        if os.geteuid():
            raise PermissionError("only root can make namespaces and mounts: run this test as root")
        library, keystone = find_library(), venv.python()
        swift = swift_source.fetch(cache_folder()).root
        (self._folder / "layers").mkdir(parents=True)
        self._make_top_dir(library, keystone)
        self._make_folders(swift)
        shown = {CLONE, library, swift, Path(sys.prefix), Path(sys.base_prefix), keystone.parents[1]}
        command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"]
        command += [str(HERE / "enter.sh"), str(self._folder), str(CLONE), sys.executable]
        # what lies in another one is shown with it
        command += [str(path) for path in sorted(shown) if shown.isdisjoint(path.parents)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"no scratch root: enter.sh ended with status {self._process.wait()}")
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        self._init = int(children.read_text().split()[0])
        return self

    def __exit__(self, *ended: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def stack(self, mode: str) -> str:
        """Run stack.sh in ``mode``; what it said.

        :raises AssertionError: when it fails, with the end of what it and its last phase said
        """
        ended = self._enter("stack", ["/bin/bash", "/opt/stack/sluice/tests/support/devstack/stack.sh", mode])
        if ended.returncode != 0:
            logs = sorted((self.stack_dir / "logs").glob(f"{mode}-*.log"), key=lambda path: path.stat().st_mtime)
            phase = "".join(f"\n{path.name}: {path.read_text(errors='replace')[-4000:]}" for path in logs[-1:])
            raise AssertionError(f"{mode}: {ended.stdout[-4000:]}{phase}")
        return ended.stdout

    def run(self, *command: str, user: str = "stack", cloud: str = "devstack-admin") -> str:
        """The output of ``command``, said by ``user`` to ``cloud`` of clouds.yaml.

        :raises AssertionError: when it fails
        """
        ended = self._enter(user, list(command), OS_CLOUD=cloud)
        assert ended.returncode == 0, f"{command}: {ended.stdout[-4000:]}"
        return ended.stdout

    def processes(self) -> dict[int, tuple[str, list[str]]]:
        """Number of each process in the root → its user and its command line, without those that have ended."""
        lines = self.run("ps", "-eo", "pid=,user:32=,args=", user="root").splitlines()
        rows = [line.split() for line in lines if "<defunct>" not in line]
        return {int(row[0]): (row[1], row[2:]) for row in rows}

    def _enter(self, user: str, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        home = "/root" if user == "root" else f"/home/{user}"
        settings = {"PATH": path, "HOME": home, "USER": user, **environment}
        enter = ["nsenter", "--target", str(self._init), "--mount", "--pid", "--net", "--uts", "--ipc", "--root"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        given = [f"{name}={value}" for name, value in settings.items()]
        return subprocess.run(
            [*enter, "/usr/bin/env", "-i", "--chdir=/", *given, *become, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def _make_top_dir(self, library: Path, keystone: Path) -> None:
        """DevStack's folder: links to its library, and what a user and a clone of it bring."""
        top = self.stack_dir / "devstack"
        (top / "files" / "swift").mkdir(parents=True)
        for path in library.iterdir():
            (top / path.name).symlink_to(path)
        (top / "files" / "swift" / "rsyncd.conf").write_text("uid = %USER%\ngid = %GROUP%\npath = %SWIFT_DATA_DIR%\n")
        secret = {name: secrets.token_hex(10) for name in ("admin", "service", "rabbit", "swift")}
        (top / "local.conf").write_text(_LOCAL_CONF.format(**secret, environment=sys.prefix, keystone=keystone))

    def _make_folders(self, swift: Path) -> None:
        """What other services would have left in /opt/stack."""
        for folder in ("data", "logs", "status", "sluice", "horizon/openstack_dashboard/local"):
            (self.stack_dir / folder).mkdir(parents=True)
        (self.stack_dir / "swift").symlink_to(swift)
        editor = self.stack_dir / "requirements" / ".venv" / "bin" / "edit-constraints"
        editor.parent.mkdir(parents=True)
        editor.write_text("#!/bin/sh\n")
        editor.chmod(0o755)
