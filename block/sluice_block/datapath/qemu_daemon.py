"""qemu-storage-daemon: started with block nodes and one NBD export on a unix socket, and controlled by QMP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from qemu.qmp import ExecuteError, QMPClient, QMPError

from sluice_block.datapath import processes
from sluice_block.datapath.processes import (
    PATIENCE,
    ProcessRecord,
    end_recorded,
    read_living,
    write_record,
)
from sluice_core.errors import PeerError

T = TypeVar("T")

PROGRAM: Final = "qemu-storage-daemon"
#: Seconds for which its NBD clients wait for an unreachable server, before I/O fails.
RECONNECT: Final = 600
#: Seconds within which its export must appear.
_START: Final = 20.0
#: Seconds within which it must answer.
_ANSWER: Final = 80.0
_EXPORT: Final = "export"

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QemuDaemon:
    """One daemon; its sockets, its pid file and its log are in ``folder``, named after its ``role``."""

    folder: Path
    role: str

    @property
    def socket(self) -> Path:
        """The socket of its NBD export."""
        return self.folder / f"{self.role}.sock"

    def start(
        self, nodes: Sequence[Options], name: str, objects: Sequence[str] = (), descriptors: Sequence[int] = ()
    ) -> None:
        """Start it; it exports the last of ``nodes`` when this returns.

        :param nodes: block nodes, as of ``blockdev-add``
        :param name: name of the NBD export; empty: no export
        :param objects: further objects, as of ``--object``
        :param descriptors: files that the objects name by number
        :raises PeerError: with its output, when it does not start
        """
        ready = self.folder / f"{self.role}.pid"
        ready.unlink(missing_ok=True)
        monitor = f"socket,id=qmp,path={_escaped(self._monitor)},server=on,wait=off"
        command = [PROGRAM, "--pidfile", str(ready), "--chardev", monitor, "--monitor", "chardev=qmp"]
        for one in objects:
            command += ["--object", one]
        for node in nodes:
            command += ["--blockdev", json.dumps(node)]
        if name:
            command += ["--nbd-server", f"addr.type=unix,addr.path={_escaped(self.socket)},max-connections=0"]
            command += ["--export", json.dumps(_export(str(nodes[-1]["node-name"]), name))]
        record = processes.start_until_ready(command, self.folder / f"{self.role}.log", ready, _START, descriptors)
        write_record(self._record, record)

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return read_living(self._record)

    def is_recorded(self) -> bool:
        """Whether it was started and not stopped, even if it has ended."""
        return self._record.exists()

    def end(self, patience: float = PATIENCE) -> None:
        """Stop it; waiting requests of its clients fail.

        :param patience: seconds to wait for the requests in progress
        :raises PeerError: when it does not end
        """
        end_recorded(self._record, patience)

    def execute(self, command: str, arguments: Options) -> Any:
        """Return its answer to one command.

        :raises PeerError: when it refuses, or does not answer
        """

        async def call() -> Any:
            async with self.connected() as client:
                return await client.execute(command, arguments)

        return self.run(call())

    async def renew_export(self, client: QMPClient, node: str, name: str) -> bool:
        """Export ``node`` again, since an export keeps the size at its creation; within :meth:`run`.

        A konnector that ended in the middle of this has left no export, and this is repeated.

        :returns: False while a client is connected: nothing is changed
        """
        if await client.execute("query-block-exports"):
            with client.listener("BLOCK_EXPORT_DELETED") as events:
                try:
                    await client.execute("block-export-del", {"id": _EXPORT, "mode": "safe"})
                except ExecuteError:
                    return False
                await events.get()
        await client.execute("block-export-add", _export(node, name))
        return True

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[QMPClient]:
        """A connection for several commands, within :meth:`run`."""
        client = QMPClient("sluice")
        await client.connect(str(self._monitor))
        try:
            yield client
        finally:
            await client.disconnect()

    @staticmethod
    def run(call: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``call``.

        :raises PeerError: when the daemon refused a command, or did not answer in time
        """
        try:
            return asyncio.run(asyncio.wait_for(call, _ANSWER))
        except (QMPError, OSError) as error:  # a time-out is an OSError, too
            raise PeerError(f"`{PROGRAM}`: {error or 'does not answer'}") from error

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.role}.process"

    @property
    def _monitor(self) -> Path:
        return self.folder / f"{self.role}.qmp"


def _export(node: str, name: str) -> dict[str, Any]:
    return {"id": _EXPORT, "type": "nbd", "node-name": node, "name": name, "writable": True}


def nbd_client(name: str, server: Options, **options: Any) -> dict[str, Any]:
    """Return the block node ``name`` that is a client of an NBD server, and waits while that is unreachable."""
    return {
        "driver": "nbd",
        "node-name": name,
        "server": server,
        "reconnect-delay": RECONNECT,
        "discard": "unmap",
        **options,
    }


def _escaped(path: Path) -> str:
    """A path in QEMU's ``key=value`` syntax, where a comma is written twice."""
    return str(path).replace(",", ",,")
