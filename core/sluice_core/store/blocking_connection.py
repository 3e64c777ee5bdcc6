"""One connection to Redis for blocking reads, without the client library's machinery.

An agent reads the change stream for every change of the cluster.  Through redis-py's pipeline and streams one read
costs more than all other work of the agent for a change.  This connection does the minimum: it packs and parses with
hiredis, and runs one set of commands at a time.  redis-py resolves addresses, and converts error replies of Redis.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, Self

import hiredis
import redis.exceptions
from redis._parsers.base import BaseParser

from sluice_core.store.operation import Command


class BlockingConnection(asyncio.Protocol):
    """Runs commands with :meth:`execute`; after any exception it can only be closed."""

    def __init__(self) -> None:
        self._parser = hiredis.Reader(replyError=BaseParser.parse_error)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[list[Any]] | None = None
        self._replies: list[Any] = []
        self._wanted = 0

    @classmethod
    async def connect(cls, address: Mapping[str, Any], tls: ssl.SSLContext | None, timeout: float) -> Self:
        """Return a connection to the address in redis-py's ``connection_kwargs``, logged in.

        :raises OSError, redis.exceptions.RedisError: when that fails
        """
        loop, connection = asyncio.get_running_loop(), cls()
        try:
            async with asyncio.timeout(timeout):
                if "path" in address:
                    await loop.create_unix_connection(lambda: connection, address["path"])
                else:
                    host, port = address.get("host", "localhost"), address.get("port", 6379)
                    await loop.create_connection(lambda: connection, host, port, ssl=tls)
                await connection._log_in(address, timeout)
        except BaseException:
            connection.close()
            raise
        return connection

    async def execute(self, commands: tuple[Command, ...], timeout: float) -> list[Any]:
        """The replies to ``commands``, in their order.

        :raises TimeoutError: when a reply is missing after ``timeout`` seconds
        :raises OSError, redis.exceptions.RedisError: when Redis is unreachable or answers with an error
        """
        if (refusal := _error_among(self._replies)) is not None:
            raise refusal  # Redis refused at connection time
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("connection closed by redis")
        loop = asyncio.get_running_loop()
        self._answer, self._replies, self._wanted = loop.create_future(), [], len(commands)
        limit = loop.call_later(timeout, self._fail, TimeoutError(f"no answer within {timeout:g} s"))
        try:
            self._transport.write(b"".join(map(hiredis.pack_command, commands)))  # type: ignore[arg-type]
            replies = await self._answer
        finally:
            limit.cancel()
            self._answer, self._replies = None, []
        if (error := _error_among(replies)) is not None:
            raise error
        return replies

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def _log_in(self, address: Mapping[str, Any], timeout: float) -> None:
        user, password, number = address.get("username"), address.get("password"), address.get("db")
        commands: list[Command] = []
        if password:
            commands.append(("AUTH", user, password) if user else ("AUTH", password))
        if number:
            commands.append(("SELECT", number))
        if commands:
            await self.execute(tuple(commands), timeout)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # -- called by asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        try:
            while (reply := self._parser.gets()) is not False:
                self._replies.append(reply)
        except hiredis.ProtocolError as error:
            self._fail(redis.exceptions.InvalidResponse(str(error)))
            return
        if len(self._replies) >= self._wanted and self._answer is not None and not self._answer.done():
            self._answer.set_result(self._replies)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        refusal = _error_among(self._replies)  # the error that Redis sent before it closed
        self._fail(refusal or error or ConnectionResetError("connection closed by redis"))


def _error_among(replies: list[Any]) -> redis.exceptions.RedisError | None:
    return next((one for one in replies if isinstance(one, redis.exceptions.RedisError)), None)
