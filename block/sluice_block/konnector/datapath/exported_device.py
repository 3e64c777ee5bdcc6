"""What a volume's users see: the front's NBD socket, or a block device over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice_block.konnector.datapath import loop_devices, socket_clients
from sluice_block.konnector.datapath.front import Front
from sluice_block.konnector.datapath.fuse_mount import FuseMount
from sluice_block.konnector.records import BLOCK


@dataclass(frozen=True, slots=True)
class ExportedDevice:
    """:param export: :data:`~sluice_block.konnector.records.BLOCK` or an NBD socket
    :param name: of the front's NBD export
    """

    front: Front
    mount: FuseMount
    export: str
    name: str

    def start(self, stack: Path) -> None:
        """Start whatever of it does not run, over the stack that listens at ``stack``.

        :raises PeerError: when a program does not start
        """
        if self.front.process() is None:
            self.front.start(stack)
        elif self.export != BLOCK:  # a konnector that died while it showed a new size may have left no export
            self.front.show_size()
        if self.export == BLOCK:
            if self.mount.process() is None:
                self.mount.start(self.front.socket, self.name)
            if not self.mount.device():
                loop_devices.make(self.mount.image)

    def address(self) -> str:
        """The block device, or the URI of the NBD socket; empty when there is none yet."""
        if self.export == BLOCK:
            return self.mount.device()
        return f"nbd+unix:///{self.name}?socket={self.front.socket}" if self.front.process() else ""

    def is_alive(self) -> bool:
        """Whether users can reach it."""
        if self.front.process() is None:
            return False
        return self.export != BLOCK or self.mount.process() is not None

    def lacks_device(self, devices: Mapping[str, str]) -> bool:
        """Whether somebody took its block device away.

        :param devices: as of :func:`loop_devices.by_file`, a moment ago
        """
        return self.export == BLOCK and str(self.mount.image) not in devices and not self.mount.device()

    def check_unused(self) -> None:
        """
        :raises Conflict: while somebody holds the device, or is connected to the NBD socket, naming who
        :raises PeerError: when that cannot be found out
        """
        server = self.front.process()
        if self.export != BLOCK and server is not None:
            socket_clients.check_unused(self.front.socket, server)
        device = self.mount.device()
        if device:
            loop_devices.check_unused(device)

    def end(self) -> None:
        """End all of it.

        :raises PeerError: when something does not end
        """
        device = self.mount.device()
        if device:
            loop_devices.remove(device)
        self.mount.end()
        self.front.end()
