"""For tests and measurements of a team: host processes to kill, nodes with a schedule, a relay to cut."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any

from sluice_actors.testing import batch_of
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.store.store import AsyncStore

#: Window → path → value.
Schedule = Callable[[int], Mapping[str, float]]


class HostProcess:
    """The real ``sluice-actors``, as one host of a team."""

    def __init__(self, name: str, folder: Path, store: AsyncStore, **options: Any) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._config = folder / f"{name}.conf"
        lines = [f"{option} = {value}" for option, value in {"host": name, **options}.items()]
        self._config.write_text("\n".join(["[actors]", *lines, ""]))
        self._store = store
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; :meth:`joined` returns when it works."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        argv = [sys.executable, "-m", "sluice_actors", "--config", str(self._config)]
        with open(self.log, "ab") as log:
            self._process = await asyncio.create_subprocess_exec(*argv, stderr=log, env=environment)

    def signal(self, number: Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def end(self, number: Signals = SIGTERM) -> int | None:
        """Stop it with a signal; return its exit status, None when it was never started."""
        if self._process is None:
            return None
        if self._process.returncode is None:
            self._process.send_signal(number)
        return await self._process.wait()

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def report(self) -> dict[str, Any]:
        """The last report of its state."""
        return (await self._store.hosts()).get(self.name, {})


class ScheduledNodes:
    """Publish one metric as the agents of some nodes do, each second for the one before."""

    def __init__(self, amqp_url: str, schedule: Schedule, metric: str = "PUTS_SEC", nodes: int = 2) -> None:
        self._schedule = schedule
        self._metric = metric
        self._nodes = nodes
        self._publisher = Publisher(amqp_url)
        self._task: asyncio.Task[None] | None = None
        #: The published windows, and their times.
        self.published: dict[int, float] = {}

    async def start(self) -> None:
        """Return when connected."""
        self._publisher.start()
        await self._publisher.connected.wait()
        self._task = asyncio.get_running_loop().create_task(self._publish())

    async def close(self) -> None:
        """Stop publishing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._publisher.close()

    async def _publish(self) -> None:
        window = int(time.time()) + 1
        while True:
            await asyncio.sleep(max(0.0, window + 1.03 - time.time()))
            rows = self._schedule(window)
            for number in range(self._nodes):
                share = {path: value / self._nodes for path, value in rows.items()}
                batch = batch_of(self._metric, window, share, f"node{number}")
                self._publisher.publish(metric_routing_key(self._metric, f"node{number}"), batch.encode())
            self.published[window] = time.time()
            window += 1


class Cable:
    """A TCP connection to some port, which can be cut and restored."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self) -> None:
        """Forward connections, on a port of its own."""
        self._server = await asyncio.start_server(self._through, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Close all connections, and refuse others."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        while self._open:
            await asyncio.sleep(0)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._open.add(back)
            try:
                await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
            finally:
                self._open.discard(back)
                back.transport.abort()
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.transport.abort()
