"""A scratch root in which DevStack's phases run: namespaces of its own, Keystone, Swift, Redis and RabbitMQ for real.

DevStack's library is at ``/opt/stack/devstack``, the clone at ``/opt/stack/sluice``.  All phases run as the user
``stack``, who becomes root by ``sudo``.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Final

from tests.support.hosts.scratch_root import ScratchRoot
from tests.support.swift_suite import source as swift_source

from sluice_aio.keystone import venv
from sluice_sandbox.files import cache_folder

HERE: Final = Path(__file__).parent
CLONE: Final = HERE.parents[2]

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

    :raises FileNotFoundError: when it is missing
    """
    found = Path(os.environ.get("DEVSTACK_DIR") or CLONE.parent / "shared" / "devstack").resolve()
    if not (found / "functions-common").is_file():
        raise FileNotFoundError(f"no DevStack in `{found}`, expected its clone; DEVSTACK_DIR names another folder")
    return found


class DevStackRoot(ScratchRoot):
    """``with DevStackRoot(folder) as root: root.stack("stack")``."""

    def __init__(self, folder: Path) -> None:
        self._library, self._keystone = find_library(), venv.python()
        self._swift = swift_source.fetch(cache_folder()).root
        shown = (CLONE, self._library, self._swift, self._keystone.parents[1])
        super().__init__(folder, "devstack", HERE / "setup.sh", shown)
        #: The folder ``/opt/stack`` of the root.
        self.stack_dir = folder / "stack"

    def start(self) -> None:
        """Create it, with the files of DevStack's user and other services."""
        self._make_top_dir(self._library, self._keystone)
        self._make_folders(self._swift)
        (self._folder / "clone").symlink_to(CLONE)
        super().start()

    def stack(self, mode: str) -> str:
        """Run stack.sh in ``mode``; return its output.

        :raises AssertionError: when it fails, with the end of its output and of its last phase
        """
        command = ["/bin/bash", "/opt/stack/sluice/tests/support/devstack/stack.sh", mode]
        ended = self.enter("stack", command, {"OS_CLOUD": "devstack-admin"})
        if ended.returncode != 0:
            logs = sorted((self.stack_dir / "logs").glob(f"{mode}-*.log"), key=lambda path: path.stat().st_mtime)
            phase = "".join(f"\n{path.name}: {path.read_text(errors='replace')[-4000:]}" for path in logs[-1:])
            raise AssertionError(f"{mode}: {ended.stdout[-4000:]}{phase}")
        return ended.stdout

    def run(self, *command: str, user: str = "stack", cloud: str = "devstack-admin", **environment: str) -> str:
        """The output of ``command``, run by ``user`` with ``cloud`` of clouds.yaml.

        :raises AssertionError: when it fails
        """
        return super().run(*command, user=user, OS_CLOUD=cloud, **environment)

    def path(self) -> str:
        """The search path of programs; DevStack's environment is that of the tests."""
        return f"{sys.prefix}/bin:{super().path()}"

    def _make_top_dir(self, library: Path, keystone: Path) -> None:
        """DevStack's folder: links to its library, and the files of a user and a clone."""
        top = self.stack_dir / "devstack"
        (top / "files" / "swift").mkdir(parents=True)
        for path in library.iterdir():
            (top / path.name).symlink_to(path)
        (top / "files" / "swift" / "rsyncd.conf").write_text("uid = %USER%\ngid = %GROUP%\npath = %SWIFT_DATA_DIR%\n")
        secret = {name: secrets.token_hex(10) for name in ("admin", "service", "rabbit", "swift")}
        (top / "local.conf").write_text(_LOCAL_CONF.format(**secret, environment=sys.prefix, keystone=keystone))

    def _make_folders(self, swift: Path) -> None:
        """The files of other services in /opt/stack."""
        for folder in ("data", "logs", "status", "sluice", "horizon/openstack_dashboard/local"):
            (self.stack_dir / folder).mkdir(parents=True)
        (self.stack_dir / "swift").symlink_to(swift)
        editor = self.stack_dir / "requirements" / ".venv" / "bin" / "edit-constraints"
        editor.parent.mkdir(parents=True)
        editor.write_text("#!/bin/sh\n")
        editor.chmod(0o755)
