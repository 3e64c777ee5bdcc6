"""A volume's interface to its users if a front is the stack's client: the front's NBD socket, or a block device over
it.

Block devices use a front on kernels that are too old for :mod:`fuse_device`, and those that an earlier konnector
attached: nbdfuse shows the front's NBD socket as a file, with a loop device over it.

Theory of operation.  The front is a qemu-storage-daemon.  It is an NBD client of the volume's nbdkit and exports the
data as NBD again.  When nbdkit ends unexpectedly, the front connects again and repeats unanswered requests, for ten
minutes (``RECONNECT``).  Errors that nbdkit answers, such as ENOSPC, it passes on at once.

To replace the stack, the konnector orders it to open the new nbdkit beside the old one and to put it below the node
``volume`` (``blockdev-reopen``): it holds new requests, waits for those in progress, and continues with the new one.
So no request reaches the source through the old stack after one through the new.

QEMU's own FUSE export is not used.  With that of QEMU 7.2 and 16 concurrent writes of 128 KiB, data of one block were
stored in the place of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from qemu.qmp import QMPError

from sluice_block.datapath import loop_devices, processes, socket_clients
from sluice_block.datapath.processes import PATIENCE, ProcessRecord, end_recorded, read_living, write_record
from sluice_block.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_block.datapath.records import BLOCK, NBD
from sluice_core.errors import PeerError

PROGRAM: Final = "nbdfuse"
#: Seconds within which the file must appear.
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class FuseMount:
    """The mount of one volume, at ``folder/mount``."""

    folder: Path

    @property
    def image(self) -> Path:
        """The file that represents the volume."""
        return self._place / "image"

    def start(self, server: Path, name: str) -> ProcessRecord:
        """Mount it.

        :param server: the NBD socket, which exports ``name``
        :raises PeerError: when the file does not appear
        """
        self.end()  # remove the mount of an ended process
        self._place.mkdir(mode=0o700, exist_ok=True)
        source = f"nbd+unix:///{quote(name, safe='')}?socket={quote(str(server))}"
        ready, log = self.folder / "fuse.pid", self.folder / "fuse.log"
        ready.unlink(missing_ok=True)
        command = [PROGRAM, "--pidfile", str(ready), str(self.image), source]
        record = processes.start_until_ready(command, log, ready, _PATIENCE)
        if not processes.wait_until(self.is_mounted, _PATIENCE):
            record.end()
            raise PeerError(f"`{self.image}` does not appear: {processes.last_lines(log)}")
        write_record(self._record, record)
        return record

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return read_living(self._record)

    def is_mounted(self) -> bool:
        """Whether a file system is mounted there, even if its process has ended."""
        try:
            return self._place.stat().st_dev != self.folder.stat().st_dev
        except FileNotFoundError:
            return False
        except OSError:  # ENOTCONN: its process has ended
            return True

    def device(self) -> str:
        """The loop device over it; empty when there is none."""
        return loop_devices.find(self.image)

    def end(self) -> None:
        """Unmount it; nbdfuse ends by itself.

        :raises PeerError: when it is in use
        """
        if self.is_mounted():
            processes.run(["umount", str(self._place)], f"`{self._place}` stays mounted")
        end_recorded(self._record)
        if self._place.exists():
            os.rmdir(self._place)

    @property
    def _record(self) -> Path:
        return self.folder / "fuse.process"

    @property
    def _place(self) -> Path:
        return self.folder / "mount"


#: Seconds that the present requests may take when the stack is replaced.
_DRAIN: Final = 60.0
_NODE: Final = "volume"


@dataclass(frozen=True, slots=True)
class ExportDaemon:
    """The daemon of one volume, whose sockets are in ``folder``; ``name`` is that of its NBD export."""

    folder: Path
    name: str

    @property
    def socket(self) -> Path:
        """The NBD socket that exports the volume."""
        return self._daemon.socket

    def start(self, stack: Path) -> None:
        """Start it over the stack that listens at ``stack``; it exports the volume when this returns.

        :raises PeerError: with its output, when it does not start
        """
        self._daemon.start([_client(stack), _top(stack)], self.name)

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return self._daemon.process()

    def is_known(self) -> bool:
        """Whether it was started since the machine booted, even if it has ended."""
        return self._daemon.is_recorded()

    def end(self, patience: float = PATIENCE) -> None:
        """End it; waiting requests of the volume's users fail.

        :param patience: seconds to wait for the requests in progress
        :raises PeerError: when it does not end
        """
        self._daemon.end(patience)

    def stack(self) -> Path:
        """Return the socket of the stack that it uses.

        :raises PeerError: when it does not answer
        """
        nodes = self._daemon.execute("query-named-block-nodes", {"flat": True})
        top = next(node for node in nodes if node["node-name"] == _NODE)
        for name in {node["node-name"] for node in nodes} - {_NODE}:
            path = self.folder / f"{name}.sock"
            if str(path) in top["image"]["filename"]:
                return path
        raise PeerError(f"the front of volume `{self.name}` has no stack")

    def size(self) -> int:
        """Return the size in bytes for new clients.

        :raises PeerError: when it does not answer
        """
        nodes = self._daemon.execute("query-named-block-nodes", {"flat": True})
        return next(int(node["image"]["virtual-size"]) for node in nodes if node["node-name"] == _NODE)

    def show_size(self) -> bool:
        """Show the present size to clients that connect from now on.

        :returns: False while a client is connected: all see the former size
        :raises PeerError: when it does not answer
        """
        return self._daemon.run(self._show_size())

    async def _show_size(self) -> bool:
        async with self._daemon.connected() as client:
            return await self._daemon.renew_export(client, _NODE, self.name)

    def swap(self, stack: Path) -> None:
        """Switch to the stack that listens at ``stack``; the former one may end then.

        :raises PeerError: when it cannot; it then keeps the former one
        """
        self._daemon.run(self._swap(stack))

    async def _swap(self, stack: Path) -> None:
        async with self._daemon.connected() as client:
            nodes: Any = await client.execute("query-named-block-nodes", {"flat": True})
            others = {str(node["node-name"]) for node in nodes} - {_NODE, stack.stem}
            if stack.stem not in {node["node-name"] for node in nodes}:  # else an earlier attempt was interrupted
                await client.execute("blockdev-add", _client(stack))
            try:
                await asyncio.wait_for(client.execute("blockdev-reopen", {"options": [_top(stack)]}), _DRAIN)
            except (QMPError, TimeoutError):
                with contextlib.suppress(QMPError):
                    await client.execute("blockdev-del", {"node-name": stack.stem})
                raise
            for old in others:
                await client.execute("blockdev-del", {"node-name": old})

    @property
    def _daemon(self) -> QemuDaemon:
        return QemuDaemon(self.folder, "front")


def _client(stack: Path) -> dict[str, Any]:
    """Return the block node that is a client of the nbdkit at ``stack``, named after its socket."""
    return nbd_client(stack.stem, {"type": "unix", "path": str(stack)})


def _top(stack: Path) -> dict[str, Any]:
    return {"driver": "raw", "node-name": _NODE, "file": stack.stem, "discard": "unmap"}


class VolumeExport(Protocol):
    """Exports a volume to its users; see :class:`ExportedDevice` and :class:`~.fuse_device.FuseDevice`."""

    @property
    def kind(self) -> str:
        """The component in front of the stack: ``fuse``, ``nbdfuse`` or ``nbd``."""

    @property
    def keeper(self) -> Path | None:
        """The socket of the keeper of a device that the stack serves by itself; None: a front is the stack's client."""

    def prepare(self) -> None:
        """Start the processes that must run before the stack."""

    def start(self, stack: Path) -> None:
        """Start the processes that need the stack."""

    def processes(self) -> list[ProcessRecord | None]:
        """The processes besides the stack; None for those that do not run."""

    def is_alive(self) -> bool:
        """Whether users can reach it."""

    def address(self) -> str:
        """A block device or a URI; empty without one."""

    def size(self) -> int:
        """The size in bytes for users."""

    def lacks_device(self, devices: Mapping[str, str]) -> bool:
        """Whether its block device was removed by another process."""

    def check_unused(self) -> None:
        """Raise Conflict while it is in use."""

    def used_stack(self) -> Path | None:
        """The socket of the stack that a front uses."""

    def swap(self, stack: Path) -> None:
        """Switch the front to another stack."""

    def break_off(self) -> None:
        """Let users' requests fail with I/O errors."""

    def end(self) -> None:
        """End all its processes."""


@dataclass(frozen=True, slots=True)
class ExportedDevice:
    """:param export: :data:`~sluice_block.datapath.records.BLOCK` or an NBD socket
    :param name: of the front's NBD export
    """

    front: ExportDaemon
    mount: FuseMount
    export: str
    name: str

    @property
    def kind(self) -> str:
        """The component in front of the stack, besides the front."""
        return "nbdfuse" if self.export == BLOCK else NBD

    @property
    def keeper(self) -> None:
        """There is none."""

    def prepare(self) -> None:
        """Do nothing: it needs no process before the stack."""

    def start(self, stack: Path) -> None:
        """Start its processes that do not run, over the stack that listens at ``stack``.

        :raises PeerError: when a program does not start
        """
        if self.front.process() is None:
            self.front.start(stack)
        elif self.export != BLOCK:  # a konnector that ended while it changed the size may have left no export
            self.front.show_size()
        if self.export == BLOCK:
            if self.mount.process() is None:
                self.mount.start(self.front.socket, self.name)
            if not self.mount.device():
                loop_devices.make(self.mount.image)

    def address(self) -> str:
        """The block device, or the URI of the NBD socket; empty without one."""
        if self.export == BLOCK:
            return self.mount.device()
        return f"nbd+unix:///{self.name}?socket={self.front.socket}" if self.front.process() else ""

    def is_alive(self) -> bool:
        """Whether users can reach it."""
        if self.front.process() is None:
            return False
        return self.export != BLOCK or self.mount.process() is not None

    def lacks_device(self, devices: Mapping[str, str]) -> bool:
        """Whether its block device was removed by another process.

        :param devices: recent result of :func:`loop_devices.by_file`
        """
        return self.export == BLOCK and str(self.mount.image) not in devices and not self.mount.device()

    def size(self) -> int:
        """Return the size in bytes for users.

        :raises PeerError: when the front does not answer
        """
        return self.front.size()

    def processes(self) -> list[ProcessRecord | None]:
        """The front, and the process of the block device."""
        return [self.front.process(), self.mount.process()]

    def used_stack(self) -> Path | None:
        """Return the socket of the stack that the front uses; None when the front does not run.

        :raises PeerError: when it does not answer
        """
        return self.front.stack() if self.front.process() is not None else None

    def swap(self, stack: Path) -> None:
        """Switch the front to the stack at a socket.

        :raises PeerError: when it fails; the front keeps the former one
        """
        self.front.swap(stack)

    def break_off(self) -> None:
        """Let users' requests fail with I/O errors.

        :raises PeerError: when the front does not end
        """
        self.front.end(patience=0)

    def check_unused(self) -> None:
        """
        :raises Conflict: while a process holds the device, or is connected to the NBD socket, naming it
        :raises PeerError: when that cannot be determined
        """
        server = self.front.process()
        if self.export != BLOCK and server is not None:
            socket_clients.check_unused(self.front.socket, server)
        device = self.mount.device()
        if device:
            loop_devices.check_unused(device)

    def end(self) -> None:
        """End all its processes.

        :raises PeerError: when one does not end
        """
        device = self.mount.device()
        if device:
            loop_devices.remove(device)
        self.mount.end()
        self.front.end()
