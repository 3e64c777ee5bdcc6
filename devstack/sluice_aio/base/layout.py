"""The folders and ports of a cluster.

Everything lies below one folder, and every port is a base plus a fixed offset, so that two clones
run side by side with another base (``SLUICE_PORT_BASE``) and folder (``SLUICE_DIR``).  Uploaded code is stored in
Swift, by a user of its own; options tell services where.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from sluice_aio.base.files import ensure_secret
from sluice_aio.base.ports import HOST, free_ports
from sluice_aio.errors import LaunchError

DEFAULT_FOLDER: Final = ".sluice"
DEFAULT_PORT_BASE: Final = 15500

#: Offset of every port from the base, in the order of ``status``.
OFFSETS: Final[Mapping[str, int]] = {
    "proxy": 0,
    "plain": 1,
    "api": 2,
    "account": 3,
    "container": 4,
    "object1": 5,
    "object2": 6,
    "object3": 7,
    "memcached": 8,
    "redis": 9,
    "rabbit": 10,
    "rabbit_dist": 11,
    "epmd": 12,
    "proxy2": 13,
    "encrypted": 14,
    "rsync": 15,
    "keystone": 16,
    "api2": 17,
    "barbican": 18,
    "cinder": 19,
    "konnector": 20,
    "konnector2": 21,
    "horizon": 22,
    "objectd1": 23,
    "objectd2": 24,
    "objectd3": 25,
}

#: Devices of the account and container servers: three replicas on one server each.
DATABASE_DEVICES: Final = ("db1", "db2", "db3")
#: Object server → its one device.
OBJECT_DEVICES: Final[Mapping[str, str]] = {"object1": "disk1", "object2": "disk2", "object3": "disk3"}

#: Daemon with the homes of objects → the object server beside it.
OBJECT_HOMES: Final[Mapping[str, str]] = {"objectd1": "object1", "objectd2": "object2", "objectd3": "object3"}

#: Agents of object servers that are separate nodes.
STORAGE_AGENTS: Final = tuple(f"agent-{server}" for server in OBJECT_DEVICES)

#: Linux refuses unix socket paths of more than 107 bytes.
_SOCKET_PATH_LIMIT: Final = 107
#: The Swift user that owns the code, in an account (or a project) of its own.
CODE_USER: Final = "sluice:code"


@dataclass(frozen=True)
class Layout:
    """Folder and ports of one cluster; see :data:`OFFSETS` for the ports' names.

    ``disks`` holds the folders that stand for disks, by default in ``folder``.  ``suffix`` distinguishes the files of
    one node from those of another.  ``nodes`` names the nodes of ``proxy2`` and of object servers with agents of their
    own; ``addresses`` maps object servers to addresses of the loopback interface other than 127.0.0.1.
    """

    folder: Path
    ports: Mapping[str, int] = field(default_factory=dict)
    node: str = "node1"
    disks: Path | None = None
    suffix: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: str | Path, port_base: int = DEFAULT_PORT_BASE) -> Self:
        """The layout in ``folder`` with every port counted from ``port_base``.

        :raises LaunchError: if a port is out of range, or the folder's path is too long
        """
        if not 1024 <= port_base <= 65535 - len(OFFSETS):
            raise LaunchError(f"port base is `{port_base}`, expected 1024 to {65535 - len(OFFSETS)}")
        return cls(Path(folder), {name: port_base + offset for name, offset in OFFSETS.items()})._checked()

    @classmethod
    def free(cls, folder: str | Path, node: str = "node1") -> Self:
        """The layout in ``folder`` on ports that are free now.

        :raises LaunchError: if the folder's path is too long
        """
        ports = free_ports(len(OFFSETS))
        return cls(Path(folder), dict(zip(OFFSETS, ports, strict=True)), node)._checked()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], clone: Path) -> Self:
        """The layout from ``SLUICE_DIR`` and ``SLUICE_PORT_BASE``, by default in ``clone``.

        :raises LaunchError: if the base is not a number
        """
        base = environment.get("SLUICE_PORT_BASE", str(DEFAULT_PORT_BASE))
        if not base.isdecimal():
            raise LaunchError(f"SLUICE_PORT_BASE is `{base}`, expected a number")
        return cls.at(clone / environment.get("SLUICE_DIR", DEFAULT_FOLDER), int(base))

    def for_demo(self) -> Self:
        """The same ports with a subfolder, so the demo starts empty and changes nothing else."""
        return replace(self, folder=self.folder / "demo")._checked()

    def _checked(self) -> Self:
        if len(str(self.run / "agent-object1.sock.credit").encode()) > _SOCKET_PATH_LIMIT:
            raise LaunchError(f"the path of `{self.folder}` is too long for a unix socket in it, use a shorter one")
        return self

    @property
    def root(self) -> Path:
        """The folder, absolute: Swift's servers change to ``/``."""
        return self.folder.absolute()

    @property
    def swift_dir(self) -> Path:
        """Folder of swift.conf, the rings and the servers' configurations."""
        return self.root / "swift"

    @property
    def configs(self) -> Path:
        """Configurations of Sluice's processes."""
        return self.root / "etc"

    @property
    def logs(self) -> Path:
        """One log file per service."""
        return self.root / "log"

    @property
    def run(self) -> Path:
        """Process ids, sockets and locks."""
        return self.root / "run"

    @property
    def data(self) -> Path:
        """Data of redis, rabbitmq and memcached."""
        return self.root / "data"

    @property
    def devices(self) -> Path:
        """The plain folders that stand for disks; no file system is mounted."""
        return self.root / "devices" if self.disks is None else self.disks.absolute()

    @property
    def snapshots(self) -> Path:
        """The agent's LMDB snapshot."""
        return self.root / f"snapshot{self.suffix}"

    @property
    def cache(self) -> Path:
        """The proxy node's cached objects."""
        return self.root / f"cache{self.suffix}"

    @property
    def agent_socket(self) -> Path:
        """The socket by which Swift's workers reach the agent."""
        return self.run / f"agent{self.suffix}.sock"

    @property
    def motif_socket(self) -> Path:
        """The socket by which Swift's proxies reach the motif daemon."""
        return self.run / f"motifs{self.suffix}.sock"

    def second_node(self) -> Self:
        """The same cluster for agent and proxy of a second node: with another snapshot and socket."""
        return replace(self, node=self.nodes.get("proxy2", f"{self.node}-second"), suffix="2")._checked()

    def storage_node(self, server: str) -> Self:
        """The same cluster for an object server with an agent of its own (``Setup.storage_agents``)."""
        return replace(self, node=self.nodes.get(server, f"{self.node}-{server}"), suffix=f"-{server}")._checked()

    def node_of(self, service: str) -> Self:
        """The same cluster for the node of the service ``agent``, ``konnector2``, ``agent-object1`` …."""
        if service in STORAGE_AGENTS:
            return self.storage_node(service.removeprefix("agent-"))
        return self.second_node() if service.endswith("2") else self

    @property
    def token_file(self) -> Path:
        """The admin token of the API, mode 0600."""
        return self.configs / "token"

    @property
    def key_file(self) -> Path:
        """The root secrets of encryption, mode 0600."""
        return self.configs / "keys.json"

    @property
    def volume_key_file(self) -> Path:
        """The root secrets of the passphrases of encrypted volumes, mode 0600."""
        return self.configs / "volume-keys.json"

    @property
    def konnector_certificate(self) -> Path:
        """The self-signed certificate of the konnector's API over TLS."""
        return self.configs / "konnector.crt"

    @property
    def code_key_file(self) -> Path:
        """The key of the Swift user that owns uploaded code, mode 0600."""
        return self.configs / "code.key"

    @property
    def code(self) -> Path:
        """The node's copies of uploaded code."""
        return self.root / f"code{self.suffix}"

    @property
    def sandbox(self) -> Path:
        """Sockets of the supervisor of jailed filters."""
        return self.run / "sandbox"

    @property
    def collectd(self) -> Path:
        """CollectD's configuration and state."""
        return self.data / "collectd"

    @property
    def recon(self) -> Path:
        """The state of Swift's daemons after their last pass."""
        return self.data / "recon"

    def device(self, server: str) -> Path:
        """The device folder of an object server."""
        return self.devices / server / OBJECT_DEVICES[server]

    @property
    def keystone_url(self) -> str:
        """Keystone's API."""
        return f"{self.url('keystone')}/v3"

    def address(self, server: str) -> str:
        """The address that an object server listens on; that of all others is 127.0.0.1."""
        return self.addresses.get(server, HOST)

    def url(self, service: str) -> str:
        """``http://127.0.0.1:<port>`` of ``service``, which must not be an object server."""
        return f"http://{HOST}:{self.ports[service]}"


def ensure_code_key(layout: Layout) -> str:
    """The user's key; generated at the first call."""
    layout.configs.mkdir(parents=True, exist_ok=True)
    return ensure_secret(layout.code_key_file, secrets.token_urlsafe(24).encode()).decode("ascii")


def code_store_options(layout: Layout, keystone: bool = False) -> dict[str, str]:
    """Options of the API, of agents and of actor hosts: the place of the code in Swift."""
    ensure_code_key(layout)
    swift = f"http://{HOST}:{layout.ports['proxy']}/auth/v1.0"
    return {
        "code_auth_url": layout.keystone_url if keystone else swift,
        "code_user": CODE_USER,
        "code_key_file": str(layout.code_key_file),
    }


def code_host_options(layout: Layout, prefix: str = "") -> dict[str, str]:
    """Options of processes that run filters: the node's code folder and its sandboxes."""
    folders = {
        "code_dir": layout.code,
        "sandbox_dir": layout.sandbox,
        "wasm_cache": layout.data / "wasm",
    }
    return {prefix + name: str(path) for name, path in folders.items()}
