"""qemu-storage-daemon of a volume: the client of its stack that waits while the stack is away.

Theory of operation.  It is an NBD client of the volume's nbdkit and shows what it reads as NBD again.  When nbdkit
dies, its connection is lost: it connects again and repeats what was not answered, for :data:`RECONNECT` seconds
(``reconnect-delay`` of the block driver ``nbd``).  Errors that nbdkit answers, such as ENOSPC, it passes on at once.

To replace the stack it is told to open the new nbdkit beside the old one and to put it below the node ``volume``
(``blockdev-reopen``): it lets no request begin, waits for those under way, and goes on with the new one.  So no request
reaches the source by the old stack after one by the new.

Its own FUSE export is not used.  That of QEMU 7.2 keeps one buffer for all requests and overwrites it while a write
waits: with 16 writes of 128 KiB at a time, data of one block were stored in the place of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from qemu.qmp import QMPClient, QMPError

from sluice_block.konnector import processes
from sluice_block.konnector.processes import ProcessRecord
from sluice_core.errors import PeerError

T = TypeVar("T")

PROGRAM: Final = "qemu-storage-daemon"
#: Seconds for which I/O waits for a stack that is away, before it fails.
RECONNECT: Final = 600
#: Seconds within which it must show the volume, and answer.
_PATIENCE: Final = 20.0
#: Seconds that the requests under way may take when the stack is replaced.
_DRAIN: Final = 60.0
_NODE: Final = "volume"
_EXPORT: Final = "front"


@dataclass(frozen=True, slots=True)
class StorageDaemon:
    """The daemon of one volume; its sockets, its pid file and its log are in ``folder``."""

    folder: Path
    #: Name of the NBD export.
    name: str

    @property
    def socket(self) -> Path:
        """The NBD socket that it shows."""
        return self.folder / "front.sock"

    def command(self, stack: Path) -> list[str]:
        """Its command line, for a stack that listens at ``stack``."""
        shown = {"id": _EXPORT, "type": "nbd", "node-name": _NODE, "name": self.name, "writable": True}
        monitor = f"socket,id=qmp,path={_escaped(self._monitor)},server=on,wait=off"
        return [
            *(PROGRAM, "--pidfile", str(self._ready), "--chardev", monitor, "--monitor", "chardev=qmp"),
            *("--blockdev", json.dumps(_client(stack)), "--blockdev", json.dumps(_top(stack))),
            *("--nbd-server", f"addr.type=unix,addr.path={_escaped(self.socket)},max-connections=0"),
            *("--export", json.dumps(shown)),
        ]

    def start(self, stack: Path) -> ProcessRecord:
        """Start it; it shows the volume when this returns.

        :raises PeerError: with what it said, when it does not
        """
        self._ready.unlink(missing_ok=True)
        record = processes.start_until_ready(self.command(stack), self.folder / "front.log", self._ready, _PATIENCE)
        processes.write_record(self._record, record)
        return record

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return processes.read_living(self._record)

    def end(self) -> None:
        """End it; what users of the volume wait for fails.

        :raises PeerError: when it does not end
        """
        processes.end_recorded(self._record)

    def stack(self) -> Path:
        """The socket of the stack that it uses.

        :raises PeerError: when it does not answer
        """
        for node in self._execute("query-named-block-nodes", {"flat": True}):
            if node["node-name"].startswith("stack-"):
                path = self.folder / f"{node['node-name']}.sock"
                if str(path) in node["image"]["filename"]:
                    return path
        raise PeerError(f"`{PROGRAM}` has no stack")

    def swap(self, stack: Path) -> None:
        """Go on with the stack that listens at ``stack``; the one before may end then.

        :raises PeerError: when it cannot; it goes on with the one before
        """
        _run(self._swap(stack))

    def size(self) -> int:
        """Bytes of the volume as it shows it.

        :raises PeerError: when it does not answer
        """
        nodes = self._execute("query-named-block-nodes", {"flat": True})
        return next(int(node["image"]["virtual-size"]) for node in nodes if node["node-name"] == _NODE)

    @property
    def _record(self) -> Path:
        return self.folder / "front.process"

    @property
    def _ready(self) -> Path:
        return self.folder / "front.pid"

    @property
    def _monitor(self) -> Path:
        return self.folder / "qmp.sock"

    def _execute(self, command: str, arguments: dict[str, Any]) -> Any:
        async def call() -> Any:
            async with self._connected() as client:
                return await client.execute(command, arguments)

        return _run(call())

    async def _swap(self, stack: Path) -> None:
        async with self._connected() as client:
            nodes: Any = await client.execute("query-named-block-nodes", {"flat": True})
            known = {str(node["node-name"]) for node in nodes} - {_NODE}
            if stack.stem in known:  # an earlier attempt was cut
                known.discard(stack.stem)
            else:
                await client.execute("blockdev-add", _client(stack))
            try:
                await asyncio.wait_for(client.execute("blockdev-reopen", {"options": [_top(stack)]}), _DRAIN)
            except (QMPError, TimeoutError):
                with contextlib.suppress(QMPError):
                    await client.execute("blockdev-del", {"node-name": stack.stem})
                raise
            for old in known:
                await client.execute("blockdev-del", {"node-name": old})

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[QMPClient]:
        client = QMPClient("sluice")
        await client.connect(str(self._monitor))
        try:
            yield client
        finally:
            await client.disconnect()


def _run(call: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(asyncio.wait_for(call, _DRAIN + _PATIENCE))
    except (QMPError, OSError) as error:  # a time-out is an OSError, too
        raise PeerError(f"`{PROGRAM}`: {error or 'does not answer'}") from error


def _client(stack: Path) -> dict[str, Any]:
    """The block node that is a client of the nbdkit at ``stack``, and called after its socket."""
    server = {"type": "unix", "path": str(stack)}
    return {
        "driver": "nbd",
        "node-name": stack.stem,
        "server": server,
        "reconnect-delay": RECONNECT,
        "discard": "unmap",
    }


def _top(stack: Path) -> dict[str, Any]:
    return {"driver": "raw", "node-name": _NODE, "file": stack.stem, "discard": "unmap"}


def _escaped(path: Path) -> str:
    """A path in QEMU's ``key=value`` syntax, where a comma is written twice."""
    return str(path).replace(",", ",,")
