"""One TCP address before several servers, as a cloud has one before the replicas of its API.

Connections go to the servers in turn; one that refuses is skipped.  The balancer does not parse their bytes: a
connection ends with its server, and the client has to repeat its request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Self

from sluice_aio.base.ports import HOST


class Balancer:
    """Serves while it is entered, in a thread of its own, at ``port``."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.port = 0
        self._ports = list(ports)
        self._turn = 0
        self._open: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="balancer")

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._through(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found = await self._connect()
            if found is None:
                return
            there, back = found
            try:
                ways = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            finally:
                back.transport.abort()
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self._ports:
            port = self._ports[self._turn % len(self._ports)]
            self._turn += 1
            try:
                return await asyncio.open_connection(HOST, port)
            except OSError:
                continue
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        return
