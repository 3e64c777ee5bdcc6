"""An image of Ceph (RBD), from Cinder's connection: who is asked for it, and as whom.

The key is the ``keyring`` of the connection, written into a file that its user alone reads; without one it is that of
this machine, ``/etc/ceph/ceph.client.USER.keyring``, where Ceph's own programs look for it.  What else the machine's
``/etc/ceph/CLUSTER.conf`` says holds, too; the monitors are those of the connection.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sluice_block.konnector.datapath.sources.fields import write_secret
from sluice_core.errors import CallerError

#: Type of Cinder's connection.
RBD: Final = "rbd"
_CONF: Final = Path("/etc/ceph")


@dataclass(frozen=True, slots=True)
class RbdImage:
    """One image.

    :param monitors: address and port of each
    :param user: without ``client.``
    :param key: of the user, in Ceph's encoding; empty for that of the machine
    :param cluster: its name, in that of the machine's configuration
    """

    pool: str
    name: str
    monitors: tuple[tuple[str, str], ...]
    user: str
    key: str = field(default="", repr=False)
    cluster: str = "ceph"

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> RbdImage:
        """
        :param data: of Cinder's connection
        :raises CallerError: when it lacks something
        """
        path = str(data.get("name", ""))
        pool, _, name = path.partition("/")
        if not (pool and name):
            raise CallerError(f"`name` of a connection of type `{RBD}` is `{path}`, expected POOL/IMAGE")
        hosts, ports = data.get("hosts"), data.get("ports")
        if not isinstance(hosts, list) or not isinstance(ports, list) or not hosts or len(hosts) != len(ports):
            raise CallerError(f"connection of type `{RBD}` has no `hosts` with as many `ports`")
        monitors = tuple((str(host).strip("[]"), str(port)) for host, port in zip(hosts, ports, strict=True))
        user = str(data.get("auth_username") or "admin")
        key = _key_in(str(data.get("keyring") or ""), user)
        return cls(pool, name, monitors, user, key, str(data.get("cluster_name") or "ceph"))

    def block_nodes(self, name: str, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
        """The block node ``name`` for a qemu-storage-daemon, alone in a list, and the objects that it needs.

        :param folder: where the key is written for QEMU
        """
        servers = [{"host": host, "port": port} for host, port in self.monitors]
        node: dict[str, Any] = {
            "driver": RBD,
            "node-name": name,
            "pool": self.pool,
            "image": self.name,
            "user": self.user,
            "conf": self._conf(),
            "server": servers,
            "discard": "unmap",
            # what was answered is stored: the daemon may be killed and started again under a stack that goes on
            "cache": {"direct": True},
        }
        if not self.key:
            return [node], []
        path = write_secret(folder / "rbd.key", self.key)
        node |= {"key-secret": "key", "auth-client-required": ["cephx"]}
        return [node], [f"secret,id=key,format=base64,file={str(path).replace(',', ',,')}"]

    def client_options(self, folder: Path) -> list[str]:
        """The options with which Ceph's own programs reach the same cluster as the same user.

        :param folder: where the key is written for them
        """
        monitors = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.monitors)
        options = ["--conf", self._conf(), "--id", self.user, "-m", monitors]
        if self.key:
            text = f"[client.{self.user}]\nkey = {self.key}\n"
            options += ["--keyring", str(write_secret(folder / "rbd.keyring", text))]
        return options

    def _conf(self) -> str:
        """The configuration of this machine, or an empty one: without any, Ceph's library looks for no keyring."""
        path = _CONF / f"{self.cluster}.conf"
        return str(path) if path.exists() else os.devnull


def _key_in(keyring: str, user: str) -> str:
    """The key of a user in the text of a keyring, which may also be the key alone."""
    if "[" not in keyring:
        return keyring.strip()
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(keyring)
        return parser[f"client.{user}"]["key"]
    except (configparser.Error, KeyError):
        # without its cause, which quotes lines
        raise CallerError(f"`keyring` of a connection of type `{RBD}` has no key of `client.{user}`") from None
