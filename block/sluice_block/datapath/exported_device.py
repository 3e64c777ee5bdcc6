"""What a volume's users see where a front is the stack's client: the front's NBD socket, or a block device over it.

Block devices are so on kernels that are too old for :mod:`fuse_device`, and those that an earlier konnector attached:
nbdfuse shows a file over the front's NBD socket, and a loop device lies over that.

Theory of operation.  The front is a qemu-storage-daemon.  It is an NBD client of the volume's nbdkit and shows what it
reads as NBD again.  When nbdkit dies, its connection is lost: it connects again and repeats what was not answered, for
ten minutes (``RECONNECT``).  Errors that nbdkit answers, such as ENOSPC, it passes on at once.

To replace the stack it is told to open the new nbdkit beside the old one and to put it below the node ``volume``
(``blockdev-reopen``): it lets no request begin, waits for those under way, and goes on with the new one.  So no request
reaches the source by the old stack after one by the new.

Its own FUSE export is not used.  With that of QEMU 7.2 and 16 writes of 128 KiB at a time, data of one block were
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
#: Seconds within which it must show the file.
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class FuseMount:
    """The mount of one volume, at ``folder/mount``."""

    folder: Path

    @property
    def image(self) -> Path:
        """The file that shows the volume."""
        return self._place / "image"

    def start(self, server: Path, name: str) -> ProcessRecord:
        """Mount it.

        :param server: the NBD socket, which shows the export ``name``
        :raises PeerError: when the file does not appear
        """
        self.end()  # what is left of one whose process has ended
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
        """Whether something is mounted there, be it dead."""
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

        :raises PeerError: when somebody uses it
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


#: Seconds that the requests under way may take when the stack is replaced.
_DRAIN: Final = 60.0
_NODE: Final = "volume"


@dataclass(frozen=True, slots=True)
class ExportDaemon:
    """The daemon of one volume, whose sockets are in ``folder``; ``name`` is that of its NBD export."""

    folder: Path
    name: str

    @property
    def socket(self) -> Path:
        """The NBD socket that shows the volume."""
        return self._daemon.socket

    def start(self, stack: Path) -> None:
        """Start it over the stack that listens at ``stack``; it shows the volume when this returns.

        :raises PeerError: with what it said, when it does not
        """
        self._daemon.start([_client(stack), _top(stack)], self.name)

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return self._daemon.process()

    def is_known(self) -> bool:
        """Whether it was started since the machine was, be it dead."""
        return self._daemon.is_recorded()

    def end(self, patience: float = PATIENCE) -> None:
        """End it; what users of the volume wait for fails.

        :param patience: seconds in which it may wait for what is under way
        :raises PeerError: when it does not end
        """
        self._daemon.end(patience)

    def stack(self) -> Path:
        """The socket of the stack that it uses.

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
        """The bytes that it shows to whoever connects.

        :raises PeerError: when it does not answer
        """
        nodes = self._daemon.execute("query-named-block-nodes", {"flat": True})
        return next(int(node["image"]["virtual-size"]) for node in nodes if node["node-name"] == _NODE)

    def show_size(self) -> bool:
        """Show the present size to clients that connect from now on.

        :returns: False while somebody is connected: all see the size of before
        :raises PeerError: when it does not answer
        """
        return self._daemon.run(self._show_size())

    async def _show_size(self) -> bool:
        async with self._daemon.connected() as client:
            return await self._daemon.renew_export(client, _NODE, self.name)

    def swap(self, stack: Path) -> None:
        """Go on with the stack that listens at ``stack``; the one before may end then.

        :raises PeerError: when it cannot; it goes on with the one before
        """
        self._daemon.run(self._swap(stack))

    async def _swap(self, stack: Path) -> None:
        async with self._daemon.connected() as client:
            nodes: Any = await client.execute("query-named-block-nodes", {"flat": True})
            others = {str(node["node-name"]) for node in nodes} - {_NODE, stack.stem}
            if stack.stem not in {node["node-name"] for node in nodes}:  # else an earlier attempt was cut
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
    """The block node that is a client of the nbdkit at ``stack``, and called after its socket."""
    return nbd_client(stack.stem, {"type": "unix", "path": str(stack)})


def _top(stack: Path) -> dict[str, Any]:
    return {"driver": "raw", "node-name": _NODE, "file": stack.stem, "discard": "unmap"}


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
        """Switch the front to another stack."""

    def break_off(self) -> None:
        """Make users get I/O errors."""

    def end(self) -> None:
        """End all of it."""


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
        """Switch the front to the stack at a socket.

        :raises PeerError: when it does not; it goes on with the one before
        """
        self.front.swap(stack)

    def break_off(self) -> None:
        """Make users get I/O errors.

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
