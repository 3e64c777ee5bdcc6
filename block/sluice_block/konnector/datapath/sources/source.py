"""The source of one volume, by the type of Cinder's connection.

===================== =================================================================================
``local``             a path of this machine, which nbdkit opens itself
``nbd``               a server on a unix socket is nbdkit's to ask, by a plugin of ours (``native/nbd``), where the
                      volume has a keeper; else as ``nfs``
``nfs``, ``rbd``      a qemu-storage-daemon opens it, and shows it to nbdkit on a unix socket
others                os-brick, where it is installed, makes a block device of it, which nbdkit opens
===================== =================================================================================

An NBD server is not left to nbdkit's own client, which answers with errors for ever once it lost its connection; QEMU's
and ours connect again and repeat what was not answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sluice_block.konnector.datapath.process_records import ProcessRecord
from sluice_block.konnector.datapath.qemu_daemon import QemuDaemon
from sluice_block.konnector.datapath.sources import qemu_nodes
from sluice_block.konnector.datapath.sources.brick_device import BrickDevice
from sluice_block.konnector.datapath.sources.fields import text_field
from sluice_block.konnector.datapath.sources.nfs_share import NfsShare
from sluice_block.konnector.datapath.sources.rbd_image import RBD, RbdImage
from sluice_block.konnector.datapath.sources.rbd_locality import find_osds
from sluice_block.stack.build import nbd_plugin
from sluice_core.errors import CallerError
from sluice_volumes.messages import RbdLocality

LOCAL: Final = "local"
NBD: Final = "nbd"
NFS: Final = "nfs"
_THROUGH_QEMU: Final = (NBD, NFS, RBD)
_EXPORT: Final = "source"


@dataclass(frozen=True, slots=True)
class Source:
    """
    :param connection: Cinder's ``connection_info``: ``driver_volume_type``, and what that type needs, either in
        ``data`` (as drivers return it) or beside it (as the API shows it)
    :param folder: of the volume, for sockets, and for secrets that QEMU reads
    :param built: folder of our plugin for nbdkit
    :param keeper: socket of what keeps the volume's block device, if there is one, and its connections then
    """

    connection: Mapping[str, Any]
    folder: Path
    built: Path | None = None
    keeper: Path | None = None

    def start(self) -> list[str]:
        """Start what it needs and does not run; the plugin and its parameters.

        :raises CallerError: when the connection is of a type that cannot be used here, or lacks something
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
        """The same for who uses it alone for a moment: nothing stands before it, and nothing is repeated."""
        server = self._direct()
        return ["nbd", f"socket={server.path}", f"export={server.export}"] if server is not None else self.start()

    def process(self) -> ProcessRecord | None:
        """The process that it needs; None when it needs none, or when it does not run."""
        return self._daemon.process()

    def has_ended(self) -> bool:
        """Whether the process that it needs does not run."""
        return self._kind in _THROUGH_QEMU and self._direct() is None and self.process() is None

    def locality(self) -> RbdLocality | None:
        """Where it lies; None when it does not lie in Ceph.

        :raises PeerError: when Ceph does not answer
        """
        return find_osds(RbdImage.of(self._data), self.folder) if self._kind == RBD else None

    def end(self) -> None:
        """End what it needs.

        :raises PeerError: when that does not end
        """
        self._daemon.end()
        self._share.unmount()
        if self._brick.record.exists():
            self._brick.disconnect(self._data)

    def _direct(self) -> qemu_nodes.UnixServer | None:
        """The NBD server that nbdkit asks itself; None when it does not."""
        return qemu_nodes.unix_server(self._data) if self._kind == NBD and self.keeper is not None else None

    def _nodes(self) -> tuple[list[dict[str, Any]], list[str]]:
        if self._kind == NBD:
            return qemu_nodes.nbd_nodes(self._data, self.folder / "tls")
        if self._kind == RBD:
            return RbdImage.of(self._data).block_nodes(_EXPORT, self.folder)
        file = self._share.find(self._data, self.connection.get("mount_point_base"))
        return qemu_nodes.file_nodes(file, text_field(self._data, "format", NFS)), []

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
        # beside the folder, which is deleted with all that is in it
        return NfsShare(self.folder.with_name(f"{self.folder.name}.share"))

    @property
    def _brick(self) -> BrickDevice:
        return BrickDevice(self.folder / "brick.device")
