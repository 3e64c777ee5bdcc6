"""The front of a volume: a qemu-storage-daemon, the client of its stack that waits while the stack is away.

Theory of operation.  It is an NBD client of the volume's nbdkit and shows what it reads as NBD again.  When nbdkit
dies, its connection is lost: it connects again and repeats what was not answered, for ten minutes (``RECONNECT``).
Errors that nbdkit answers, such as ENOSPC, it passes on at once.

To replace the stack it is told to open the new nbdkit beside the old one and to put it below the node ``volume``
(``blockdev-reopen``): it lets no request begin, waits for those under way, and goes on with the new one.  So no request
reaches the source by the old stack after one by the new.

Its own FUSE export is not used.  With that of QEMU 7.2 and 16 writes of 128 KiB at a time, data of one block were
stored in the place of others.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qemu.qmp import QMPError

from sluice_block.konnector.datapath.process_records import PATIENCE, ProcessRecord
from sluice_block.konnector.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_core.errors import PeerError

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
        """Have those who connect from now on see the size that it has now.

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
