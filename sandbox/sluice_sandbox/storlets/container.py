"""One tenant's container: Storlets' Docker sandbox, hardened.

A container has one processor's worth of time, the memory of its limits, some processes, and a small /tmp; it mounts the
image (read-only), the library (read-only), its tenant's filters (read-only), and the folder of its sockets.  It has no
network, no capabilities, no new privileges, an ordinary user, and no device of the host.

Paths inside, the command's form and the protocol are those of Storlets.  Storlets' own class is not used: importing it
patches the whole process for green threads, and it fails under load.  Here a missing image is never pulled, a container
is replaced and not stopped, one at a time over all processes of the node, waiting has limits and blocks no green
thread, and names contain node and tenant, so that several nodes can share an engine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final

import docker
from docker.errors import APIError, ImageNotFound, NotFound
from docker.types import LogConfig, Mount
from storlets.sbus import command as sbus

from sluice_core.errors import PeerError
from sluice_filters.api import FilterError
from sluice_sandbox.docker.client import docker_client
from sluice_sandbox.files import file_lock
from sluice_sandbox.limits import Limits
from sluice_sandbox.storlets import commands, wire
from sluice_sandbox.storlets.stage import StorletTask
from sluice_sandbox.waiting import pause

_TEMPORARY: Final = "/tmp"  # noqa: S108  # a container's own, of limited size
_PING: Final = 0.01
_RPC: Final = 15.0
_MODULE: Final = "sluice_sandbox.storlets.factory"
#: Socket of the factory, beside those of the daemons.
FACTORY: Final = "factory_pipe"
_LIBRARY: Final = "/usr/local/lib/storlets"


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """The settings of containers: this node's part of an engine.

    ``engine`` is the engine's URL, ``image`` the name of an image in it, ``folder`` Sluice's folder for sockets and
    code, ``library`` the result of :func:`~sluice_sandbox.storlets.library.prepare`.  ``uid`` runs the filters; None is
    the user of this process, or nobody if that is root.  At most ``runs`` of one filter for one tenant run at once.  A
    cold start may take ``patience`` seconds.
    """

    engine: str
    image: str
    folder: Path
    library: Path
    node: str = "node"
    uid: int | None = None
    runs: int = 16
    cpus: float = 1.0
    temporary: int = 64 * 1024 * 1024
    patience: float = 30.0

    def user(self) -> int:
        """The user that runs the filters."""
        if self.uid is not None:
            return self.uid
        return os.geteuid() or 65534


class Unavailable(FilterError):
    """No container is available now."""


class _Full(Unavailable):
    """The container has no free processes: code forked until none was left."""


class Container:
    """The container of ``account`` at ``place``; it is started at its first use.

    ``name`` is its name in the engine.  ``sockets`` and ``code`` are folders on the host, mounted as
    ``sockets_inside`` and ``code_inside``.
    """

    def __init__(self, account: str, place: ContainerSettings, limits: Limits) -> None:
        self.account = account
        self.place = place
        self.limits = limits
        scope = hashlib.sha256(account.encode()).hexdigest()[:16]
        self.name = f"sluice-{place.node}-{scope}"
        self.sockets, self.sockets_inside = place.folder / place.node / "pipes" / scope, Path("/mnt/channels")
        self.code, self.code_inside = place.folder / place.node / "code" / scope, Path("/var/lib/storlets")
        self._lock = place.folder / place.node / "locks" / scope

    def socket_of(self, name: str) -> str:
        """The socket of the daemon ``name`` on the host."""
        return str(self.sockets / name)

    def ensure(self, task: StorletTask) -> None:
        """Start the container and the daemon of ``task`` in it, unless they run.

        :raises Unavailable: when that fails
        """
        try:
            with self._alone():
                if self.ping(task.name):
                    return  # another process was faster
                if not self.ping():
                    self.restart()
                try:
                    self._start_daemon(task)
                except _Full:
                    self.restart()
                    self._start_daemon(task)
                self.wait(task.name)
        except TimeoutError as error:
            raise Unavailable(f"container of `{self.account}`: {error}") from error

    def replace(self, unless: Callable[[], bool] | None = None) -> None:
        """Remove the container, so that the next user starts a new one.

        :param unless: called when the lock is held; returns True when the replacement is no longer needed
        """
        try:
            with self._alone():
                if unless is None or not unless():
                    with self._engine() as client:
                        self._remove(client)
        except (PeerError, OSError) as error:
            raise Unavailable(f"container of `{self.account}` cannot be replaced: {error}") from error

    def ping(self, name: str = FACTORY) -> bool:
        """Whether the factory, or the daemon ``name``, answers at once."""
        try:
            return bool(commands.call(self.socket_of(name), sbus.SBUS_CMD_PING, {}, timeout=2.0)["status"])
        except (OSError, TimeoutError, ValueError, KeyError):
            return False

    def wait(self, name: str = FACTORY) -> None:
        """Wait until the factory, or the daemon ``name``, answers.

        :raises Unavailable: when it does not in time
        """
        deadline = monotonic() + self.place.patience
        while not self.ping(name):
            if monotonic() > deadline:
                raise Unavailable(f"container of `{self.account}` does not answer")
            pause(_PING)

    def restart(self) -> None:
        """Start the container, in place of an existing one; the caller holds the lock."""
        self._make_folders()
        try:
            self._start()
        except PeerError as error:
            raise Unavailable(f"container of `{self.account}` cannot be started: {error}") from error
        self.wait()

    def _alone(self) -> AbstractContextManager[None]:
        """Return a lock that one process or thread of the node can hold.

        :raises TimeoutError: when the lock is not free in time
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return file_lock(self._lock, self.place.patience)

    def _make_folders(self) -> None:
        """Make the folders that are mounted; only the container's user may enter that of the sockets."""
        for folder in (self.code.parent, self.sockets.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        self.code.mkdir(exist_ok=True, mode=0o755)
        self.sockets.mkdir(exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.sockets, self.place.user(), -1)

    def _start(self) -> None:
        image = self.place.image
        with self._engine() as client:
            try:
                client.images.get(image)  # else the engine would ask a registry for it
            except ImageNotFound as error:
                raise Unavailable(f"the engine has no image `{image}`; see `sluice-sandbox image build`") from error
            self._remove(client)
            mine = client.containers.list(sparse=True, filters={"label": f"sluice.node={self.place.node}"})
            if len(mine) >= self.limits.tenants:
                raise Unavailable(f"{len(mine)} tenants have containers on this node, expected at most that many")
            client.containers.create(image, **self._settings()).start()

    def _settings(self) -> dict[str, Any]:
        """All settings of the container; a test compares them with the engine's result."""
        memory = self.limits.memory
        return {
            "name": self.name,
            "command": self._command(),
            "entrypoint": ["python3"],
            "environment": {"PYTHONPATH": f"{_LIBRARY}/python", "PYTHONDONTWRITEBYTECODE": "1"},
            "mounts": [
                Mount(str(self.sockets_inside), str(self.sockets), type="bind"),
                Mount(str(self.code_inside), str(self.code), type="bind", read_only=True),
                Mount(_LIBRARY, str(self.place.library), type="bind", read_only=True),
            ],
            "user": f"{self.place.user()}:{self.place.user()}",
            "labels": {"managed_by": "sluice", "sluice.node": self.place.node, "sluice.account": self.account},
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "read_only": True,
            "tmpfs": {_TEMPORARY: f"size={self.place.temporary},mode=1777,nosuid,nodev,noexec"},
            "shm_size": "1m",
            "ipc_mode": "private",
            "pids_limit": max(32, self.place.runs * self.limits.processes),
            "mem_limit": memory,
            "memswap_limit": memory,
            "nano_cpus": int(self.place.cpus * 1e9),
            "init": True,
            "auto_remove": True,
            "log_config": LogConfig(type="none"),
            "working_dir": _TEMPORARY,
        }

    def _command(self) -> list[str]:
        return ["-m", _MODULE, str(self.sockets_inside / FACTORY), str(self.limits.idle), str(self.code_inside)]

    def _remove(self, client: docker.DockerClient) -> None:
        """Remove the container, and wait until it is removed, also if its removal had already begun."""
        deadline = monotonic() + self.place.patience
        while True:
            try:
                client.containers.get(self.name).remove(force=True)
            except NotFound:
                return
            except APIError as error:
                if error.status_code != 409 or monotonic() > deadline:
                    raise
                pause(_PING)

    def _engine(self) -> AbstractContextManager[docker.DockerClient]:
        return docker_client(self.place.engine, self.place.patience)

    def _start_daemon(self, task: StorletTask) -> None:
        params = {
            "daemon_language": task.language,
            "storlet_path": task.classpath,
            "storlet_name": task.name,
            "storlet_main": task.main,
            "uds_path": str(self.sockets_inside / task.name),
            "log_level": "OFF",
            "pool_size": self.place.runs,
        }
        try:
            answer = commands.call(self.socket_of(FACTORY), sbus.SBUS_CMD_START_DAEMON, params, _RPC)
        except (OSError, TimeoutError, ValueError) as error:
            raise Unavailable(f"container of `{self.account}` does not answer: {error}") from error
        if answer.get("message") == wire.NO_PROCESSES:
            raise _Full(f"container of `{self.account}` has {wire.NO_PROCESSES}")
        if not answer.get("status"):
            raise Unavailable(f"filter {task.main}: {answer.get('message', 'no reason')}")
