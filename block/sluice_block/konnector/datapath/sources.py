"""What lies behind a volume's stack: Cinder's connection, as a plugin of nbdkit with its parameters.

``local`` is a path of this machine, which nbdkit opens itself.  ``nbd`` (the driver of Sluice) is an NBD server.  A
qemu-storage-daemon is its client, and shows it to nbdkit on a unix socket: nbdkit's own client answers with errors for
ever once it lost its connection, QEMU's connects again and repeats what was not answered.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from sluice_block.konnector.datapath.process_records import ProcessRecord
from sluice_block.konnector.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_core.errors import CallerError

#: Types that need no connector.
NBD: Final = "nbd"
LOCAL: Final = "local"
_PORT: Final = 10809
_EXPORT: Final = "source"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of one volume.

    :param connection: Cinder's ``connection_info``: ``driver_volume_type``, and what that type needs, either in
        ``data`` (as drivers return it) or beside it (as the API shows it)
    :param folder: of the volume, for sockets, and for secrets that QEMU reads
    """

    connection: Mapping[str, Any]
    folder: Path

    def start(self) -> list[str]:
        """Start what it needs and does not run; the plugin and its parameters.

        :raises CallerError: when the connection is of a type that cannot be used here, or lacks something
        :raises PeerError: when the server behind it does not answer
        """
        kind, data = str(self.connection.get("driver_volume_type")), self.connection.get("data", self.connection)
        if not isinstance(data, Mapping):
            raise CallerError(f"`data` of a connection of type `{kind}` is no object")
        if kind == LOCAL:
            return _local(_text(data, "device_path", kind))
        if kind != NBD:
            raise CallerError(f"connections of type `{kind}` cannot be used here, expected {NBD} or {LOCAL}")
        if self._daemon.process() is None:
            node, objects = self._client(data)
            self._daemon.start([node], _EXPORT, objects)
        return ["nbd", f"uri=nbd+unix:///{_EXPORT}?socket={quote(str(self._daemon.socket))}"]

    def process(self) -> ProcessRecord | None:
        """The process that it needs; None when it needs none, or when it does not run."""
        return self._daemon.process()

    def has_ended(self) -> bool:
        """Whether the process that it needs does not run."""
        return self.connection.get("driver_volume_type") == NBD and self.process() is None

    def end(self) -> None:
        """End what it needs.

        :raises PeerError: when that does not end
        """
        self._daemon.end()

    @property
    def _daemon(self) -> QemuDaemon:
        return QemuDaemon(self.folder, "source")

    def _client(self, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The block node for an NBD server, and the objects that it needs."""
        address = urlsplit(_text(data, "uri", NBD))
        options: dict[str, Any] = {"export": unquote(address.path.removeprefix("/"))}
        key = data.get("auth_password")
        objects = [self._credentials(_text(data, "auth_username", NBD), str(key))] if key else []
        if objects:
            options["tls-creds"] = "tls"
        if address.scheme == "nbd+unix":
            path = parse_qs(address.query).get("socket", [""])[0]
            return nbd_client(_EXPORT, {"type": "unix", "path": path}, **options), objects
        if address.scheme != "nbds" or not address.hostname or not key:
            raise CallerError(
                f"`uri` is `{address.scheme}://…`, expected nbd+unix, or nbds with a key: TCP only with TLS"
            )
        server = {"type": "inet", "host": address.hostname, "port": str(address.port or _PORT)}
        return nbd_client(_EXPORT, server, **options), objects

    def _credentials(self, identity: str, key: str) -> str:
        """Write the key where QEMU reads it, and return the object that does."""
        folder = self.folder / "tls"
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / "keys.psk", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(f"{identity}:{key}\n")
        given = {"id": "tls", "dir": str(folder), "endpoint": "client", "username": identity}
        return ",".join(["tls-creds-psk", *(f"{name}={value.replace(',', ',,')}" for name, value in given.items())])


def _local(path: str) -> list[str]:
    if not Path(path).is_absolute():
        raise CallerError(f"`device_path` is `{path}`, expected an absolute path")
    return ["file", path]


def _text(data: Mapping[str, Any], name: str, kind: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"connection of type `{kind}` has no `{name}`")
    return value
