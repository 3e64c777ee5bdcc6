"""The source of one volume, by the type of Cinder's connection.

===================== =================================================================================
``local``             a path of this machine, which nbdkit opens itself
``nbd``               nbdkit connects to a server on a unix socket, by Sluice's plugin (``native/nbd``), if the
                      volume has a keeper; else as ``nfs``
``nfs``, ``rbd``      a qemu-storage-daemon opens it, and exports it to nbdkit on a unix socket
others                os-brick, if it is installed, makes a block device of it, which nbdkit opens
===================== =================================================================================

nbdkit's own NBD client is not used, since it answers with errors for ever after a lost connection; QEMU's and Sluice's
clients connect again and repeat unanswered requests.

An NBD server or a file is a list of QEMU's block nodes, as for ``blockdev-add``, of which the last is the volume; an
NFS share is used where it is mounted already, or is mounted for the volume.  For other connections (iSCSI, Fibre
Channel, NVMe over fabrics, …) os-brick makes a block device.  It is an optional dependency: without it such a
connection is refused by name.  It runs in this process, which is root's, and not through a daemon of its own.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from sluice_block.datapath import processes
from sluice_block.datapath.processes import ProcessRecord, is_mounted, unmount
from sluice_block.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_block.datapath.rbd_image import RBD, RbdImage, find_osds
from sluice_block.datapath.records import text_field, write_secret
from sluice_block.stack.build import nbd_plugin
from sluice_core.errors import CallerError, PeerError
from sluice_volumes.messages import RbdLocality

#: Number of times that os-brick searches for a device.
_SCANS: Final = 3
#: Types that do not need os-brick.
_WITHOUT: Final = ("nbd", "nfs", "rbd", "local")


@dataclass(frozen=True, slots=True)
class BrickDevice:
    """``record`` is a file that names the device; like the device, it does not survive a reboot."""

    record: Path

    def connect(self, kind: str, data: Mapping[str, Any]) -> str:
        """Return the path of the device; connect it if it is not connected.

        :param kind: type of the connection
        :raises CallerError: when os-brick is missing, or does not support the type
        :raises PeerError: when it fails
        """
        if self.record.exists():
            return str(json.loads(self.record.read_text(encoding="utf-8"))["device"]["path"])
        connector, errors = self._load(kind)
        try:
            device = connector.connect_volume(dict(data))
        except errors as error:
            raise PeerError(f"os-brick does not connect a volume of type `{kind}`: {type(error).__name__}") from error
        shown = {"kind": kind, "device": {name: value for name, value in device.items() if isinstance(value, str)}}
        self.record.write_text(json.dumps(shown), encoding="utf-8")
        return str(device["path"])

    def disconnect(self, data: Mapping[str, Any]) -> None:
        """Disconnect the device.

        :raises PeerError: when os-brick fails
        """
        known = json.loads(self.record.read_text(encoding="utf-8"))
        connector, errors = self._load(known["kind"])
        try:
            connector.disconnect_volume(dict(data), known["device"])
        except errors as error:
            raise PeerError(f"os-brick does not disconnect `{known['device']['path']}`: {error}") from error
        self.record.unlink()

    def _load(self, kind: str) -> tuple[Any, tuple[type[Exception], ...]]:
        """Load os-brick's connector of a type, and its exceptions.

        :raises CallerError: when os-brick is missing, or does not support the type
        """
        try:
            connectors: Any = importlib.import_module("os_brick.initiator.connector")
            privileged: Any = importlib.import_module("os_brick.privileged")
            exceptions: Any = importlib.import_module("os_brick.exception")
            concurrency: Any = importlib.import_module("oslo_concurrency.processutils")
            config: Any = importlib.import_module("oslo_config.cfg")
        except ImportError as error:
            raise CallerError(
                f"connections of type `{kind}` cannot be used here, expected {', '.join(_WITHOUT)}, "
                f"or os-brick to be installed: {error}"
            ) from error
        privileged.default.set_client_mode(False)
        config.CONF.set_default("lock_path", str(self.record.parent.parent), "os_brick")  # all volumes share it
        try:
            connector = connectors.InitiatorConnector.factory(kind.upper(), "", device_scan_attempts=_SCANS)
        except (exceptions.InvalidConnectorProtocol, ValueError) as error:
            raise CallerError(f"os-brick knows no connections of type `{kind}`") from error
        return connector, (exceptions.BrickException, concurrency.ProcessExecutionError, OSError)


_VOLUME: Final = "source"
_NBD_PORT: Final = 10809
#: Formats in the connections of drivers of file systems.
_FORMATS: Final = ("raw", "qcow2")

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UnixServer:
    """An NBD server on a unix socket of this machine."""

    path: str
    export: str


def unix_server(data: Mapping[str, Any]) -> UnixServer | None:
    """Return the server of a connection, if it is one on a unix socket without a key.

    :raises CallerError: when the connection has no ``uri``
    """
    address = urlsplit(text_field(data, "uri", "nbd"))
    path = parse_qs(address.query).get("socket", [""])[0]
    if address.scheme != "nbd+unix" or not path or data.get("auth_password"):
        return None
    return UnixServer(path, unquote(address.path.removeprefix("/")))


def nbd_nodes(data: Mapping[str, Any], tls: Path) -> tuple[list[Node], list[str]]:
    """Return the node of an NBD server, and the objects that it needs.

    :param tls: folder for the key of the attachment, for QEMU
    :raises CallerError: when a field or TLS is missing
    """
    address = urlsplit(text_field(data, "uri", "nbd"))
    options: Node = {"export": unquote(address.path.removeprefix("/"))}
    key = data.get("auth_password")
    objects = [_write_key(tls, text_field(data, "auth_username", "nbd"), str(key))] if key else []
    if objects:
        options["tls-creds"] = "tls"
    if address.scheme == "nbd+unix":
        path = parse_qs(address.query).get("socket", [""])[0]
        return [nbd_client(_VOLUME, {"type": "unix", "path": path}, **options)], objects
    if address.scheme != "nbds" or not address.hostname or not key:
        raise CallerError(f"`uri` is `{address.scheme}://…`, expected nbd+unix, or nbds with a key: TCP only with TLS")
    server = {"type": "inet", "host": address.hostname, "port": str(address.port or _NBD_PORT)}
    return [nbd_client(_VOLUME, server, **options)], objects


def file_nodes(file: Path, kind: str) -> list[Node]:
    """Return the nodes of a file.

    :param kind: its format, which is never guessed: a user could write data that looks like another format
    :raises CallerError: when it is another format
    """
    if kind not in _FORMATS:
        raise CallerError(f"`format` is `{kind}`, expected {' or '.join(_FORMATS)}")
    bottom = {"driver": "file", "node-name": "file", "filename": str(file), "discard": "unmap"}
    return [bottom, {"driver": kind, "node-name": _VOLUME, "file": "file", "discard": "unmap"}]


def _write_key(folder: Path, identity: str, key: str) -> str:
    """Write the key for QEMU, and return the object that reads it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    write_secret(folder / "keys.psk", f"{identity}:{key}\n")
    given = {"id": "tls", "dir": str(folder), "endpoint": "client", "username": identity}
    return ",".join(["tls-creds-psk", *(f"{name}={value.replace(',', ',,')}" for name, value in given.items())])


@dataclass(frozen=True, slots=True)
class NfsShare:
    """``place`` is its mount point if no other program has mounted it."""

    place: Path

    def find(self, data: Mapping[str, Any], base: object) -> Path:
        """Return the volume's file.

        :param data: ``export``, ``name`` and ``options`` of a connection
        :param base: the folder in which Cinder and os-brick mount shares, under the MD5 of their names
        :raises CallerError: when a field is missing
        :raises PeerError: when the share cannot be mounted
        """
        export, name = text_field(data, "export", "nfs"), text_field(data, "name", "nfs")
        if Path(name).name != name:
            raise CallerError(f"`name` is `{name}`, expected the name of a file")
        if isinstance(base, str) and base:
            digest = hashlib.md5(export.encode(), usedforsecurity=False).hexdigest()
            if is_mounted(Path(base) / digest):
                return Path(base) / digest / name
        if not is_mounted(self.place):
            self.place.mkdir(mode=0o700, exist_ok=True)
            options = [part for part in str(data.get("options") or "").split() if part != "-o"]
            given = ["-o", ",".join(options)] if options else []
            processes.run(["mount", "-t", "nfs", *given, "--", export, str(self.place)], f"`{export}` is not mounted")
        return self.place / name

    def unmount(self) -> None:
        """Remove the mount if it was made here.

        :raises PeerError: when it is in use
        """
        unmount(self.place)
        if self.place.exists():
            os.rmdir(self.place)


LOCAL: Final = "local"
NBD: Final = "nbd"
NFS: Final = "nfs"
_THROUGH_QEMU: Final = (NBD, NFS, RBD)
_EXPORT: Final = "source"


@dataclass(frozen=True, slots=True)
class Source:
    """
    :param connection: Cinder's ``connection_info``: ``driver_volume_type``, and the fields of that type, either in
        ``data`` (as drivers return it) or beside it (as the API shows it)
    :param folder: of the volume, for sockets, and for secrets that QEMU reads
    :param built: folder of Sluice's plugin for nbdkit
    :param keeper: socket of the keeper of the volume's block device, if there is one, and of its connections then
    """

    connection: Mapping[str, Any]
    folder: Path
    built: Path | None = None
    keeper: Path | None = None

    def start(self) -> list[str]:
        """Start the processes that it needs; return the plugin and its parameters.

        :raises CallerError: when the connection is of a type that cannot be used here, or lacks a field
        :raises PeerError: when the server behind it does not answer
        """
        if self._kind == LOCAL:
            path = text_field(self._data, "device_path", LOCAL)
            if not Path(path).is_absolute():
                raise CallerError(f"`device_path` is `{path}`, expected an absolute path")
            return ["file", path]
        if self._kind not in _THROUGH_QEMU:
            return ["file", self._brick.connect(self._kind, self._data)]
        server = self._direct()
        if server is not None and self.built is not None:
            plugin = str(nbd_plugin(self.built))
            return [plugin, f"nbd-socket={server.path}", f"nbd-export={server.export}", f"nbd-keeper={self.keeper}"]
        if self._daemon.process() is None:
            nodes, objects = self._nodes()
            self._daemon.start(nodes, _EXPORT, objects)
        return ["nbd", f"uri=nbd+unix:///{_EXPORT}?socket={quote(str(self._daemon.socket))}"]

    def start_stored(self) -> list[str]:
        """As :meth:`start`, for a caller that uses the source alone for a moment: without filters and without
        repetition of requests.
        """
        server = self._direct()
        return ["nbd", f"socket={server.path}", f"export={server.export}"] if server is not None else self.start()

    def process(self) -> ProcessRecord | None:
        """The process that it needs; None when it needs none, or it does not run."""
        return self._daemon.process()

    def has_ended(self) -> bool:
        """Whether the process that it needs does not run."""
        return self._kind in _THROUGH_QEMU and self._direct() is None and self.process() is None

    def locality(self) -> RbdLocality | None:
        """Return where the image is stored; None when it is not in Ceph.

        :raises PeerError: when Ceph does not answer
        """
        return find_osds(RbdImage.of(self._data), self.folder) if self._kind == RBD else None

    def end(self) -> None:
        """End the processes that it needs.

        :raises PeerError: when one does not end
        """
        self._daemon.end()
        self._share.unmount()
        if self._brick.record.exists():
            self._brick.disconnect(self._data)

    def _direct(self) -> UnixServer | None:
        """Return the NBD server to which nbdkit connects itself; None when it does not."""
        return unix_server(self._data) if self._kind == NBD and self.keeper is not None else None

    def _nodes(self) -> tuple[list[dict[str, Any]], list[str]]:
        if self._kind == NBD:
            return nbd_nodes(self._data, self.folder / "tls")
        if self._kind == RBD:
            return RbdImage.of(self._data).block_nodes(_EXPORT, self.folder)
        file = self._share.find(self._data, self.connection.get("mount_point_base"))
        return file_nodes(file, text_field(self._data, "format", NFS)), []

    @property
    def _kind(self) -> str:
        return str(self.connection.get("driver_volume_type"))

    @property
    def _data(self) -> Mapping[str, Any]:
        data = self.connection.get("data", self.connection)
        if not isinstance(data, Mapping):
            raise CallerError(f"`data` of a connection of type `{self._kind}` is no object")
        return data

    @property
    def _daemon(self) -> QemuDaemon:
        return QemuDaemon(self.folder, "source")

    @property
    def _share(self) -> NfsShare:
        # beside the folder, which is deleted with its content
        return NfsShare(self.folder.with_name(f"{self.folder.name}.share"))

    @property
    def _brick(self) -> BrickDevice:
        return BrickDevice(self.folder / "brick.device")
