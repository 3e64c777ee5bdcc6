"""What a volume's users see where a front is the stack's client: the front's NBD socket, or a block device over it.

Block devices are so on kernels that are too old for :mod:`fuse_device`, and those that an earlier konnector attached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sluice_block.konnector.datapath import loop_devices, socket_clients
from sluice_block.konnector.datapath.export_daemon import ExportDaemon
from sluice_block.konnector.datapath.fuse_mount import FuseMount
from sluice_block.konnector.datapath.process_records import ProcessRecord
from sluice_block.konnector.records import BLOCK, NBD


class VolumeExport(Protocol):
    """What shows a volume to its users; :class:`ExportedDevice` and :class:`~.fuse_device.FuseDevice` say more."""

    @property
    def kind(self) -> str:
        """What its users' requests pass before the stack: ``fuse``, ``nbdfuse`` or ``nbd``."""

    @property
    def keeper(self) -> Path | None:
        """The socket of what keeps the device that the stack serves by itself; None: a front is its client."""

    def prepare(self) -> None:
        """Start what must be there before the stack."""

    def start(self, stack: Path) -> None:
        """Start what must be there behind it."""

    def processes(self) -> list[ProcessRecord | None]:
        """What it needs beside the stack; None for what does not run."""

    def is_alive(self) -> bool:
        """Whether users can reach it."""

    def address(self) -> str:
        """A block device or a URI; empty when there is none yet."""

    def size(self) -> int:
        """The bytes that users see."""

    def lacks_device(self, devices: Mapping[str, str]) -> bool:
        """Whether somebody took its block device away."""

    def check_unused(self) -> None:
        """Refuse (Conflict) while somebody uses it."""

    def used_stack(self) -> Path | None:
        """The socket of the stack that a front uses."""

    def swap(self, stack: Path) -> None:
        """Have the front use another stack."""

    def break_off(self) -> None:
        """Have users get I/O errors."""

    def end(self) -> None:
        """End all of it."""


@dataclass(frozen=True, slots=True)
class ExportedDevice:
    """:param export: :data:`~sluice_block.konnector.records.BLOCK` or an NBD socket
    :param name: of the front's NBD export
    """

    front: ExportDaemon
    mount: FuseMount
    export: str
    name: str

    @property
    def kind(self) -> str:
        """What users' requests pass before the stack, beside the front."""
        return "nbdfuse" if self.export == BLOCK else NBD

    @property
    def keeper(self) -> None:
        """There is none."""

    def prepare(self) -> None:
        """Nothing must be there before the stack."""

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

    def size(self) -> int:
        """The bytes that users see.

        :raises PeerError: when the front does not answer
        """
        return self.front.size()

    def processes(self) -> list[ProcessRecord | None]:
        """The front, and what shows the block device."""
        return [self.front.process(), self.mount.process()]

    def used_stack(self) -> Path | None:
        """The socket of the stack that the front uses; None when it does not run.

        :raises PeerError: when it does not answer
        """
        return self.front.stack() if self.front.process() is not None else None

    def swap(self, stack: Path) -> None:
        """Have the front use the stack at a socket.

        :raises PeerError: when it does not; it goes on with the one before
        """
        self.front.swap(stack)

    def break_off(self) -> None:
        """Have users get I/O errors.

        :raises PeerError: when the front does not end
        """
        self.front.end(patience=0)

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
