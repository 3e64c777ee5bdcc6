"""The store: the one door to Redis, for threads (:class:`Store`) and for asyncio (:class:`AsyncStore`).

Both have the same methods; what each does is in ``sluice_core.store.operations``.  Every fault of Redis or
of the way there, timeouts included, comes out as :class:`PeerError`.  Nothing is tried again here:
a commit whose answer was lost may have happened, and only the caller knows what that means.
Constructors do not connect.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import redis
import redis.asyncio
import redis.exceptions

from sluice_core.messages.policies import Assignment, Change, Entry, NodeReport, Policy, PolicyState, Upload
from sluice_core.store import change_stream, operations
from sluice_core.store.blocking_connection import Line
from sluice_core.store.keys import Keys
from sluice_core.store.operations import STREAM_LENGTH, Command, Committed, Draft, FullState, Gap, Head, Operation
from sluice_core.store.redis_urls import RedisPlace

__all__ = ["STREAM_LENGTH", "AsyncStore", "Committed", "Draft", "FullState", "Gap", "Head", "Store"]

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds for connecting and for every answer; a blocking read stays below it.
TIMEOUT: Final = 5.0
_FAULTS: Final = (redis.exceptions.RedisError, OSError, asyncio.IncompleteReadError)


class _Common:
    """What both stores know: where Redis is and how long to wait.

    :param url: any of those in ``sluice_core.store.redis_urls``
    """

    def __init__(
        self, url: str, prefix: str = "sluice", stream_length: int = STREAM_LENGTH, timeout: float = TIMEOUT
    ) -> None:
        self.keys = Keys(prefix)
        self.stream_length = stream_length
        self.timeout = timeout
        self._place = RedisPlace(url)

    def _block(self, block_ms: int) -> int:
        return min(block_ms, int(self.timeout * 600))


class Store(_Common):
    """The store for threads; safe to share between them, not across a fork."""

    def __init__(
        self, url: str, prefix: str = "sluice", stream_length: int = STREAM_LENGTH, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(url, prefix, stream_length, timeout)
        self.client: redis.Redis = self._place.client(timeout)

    def _run(self, operation: Operation[T]) -> T:
        try:
            return operation.parse(self._replies(operation))
        except _FAULTS as error:
            raise self._place.fault(error) from error

    def _replies(self, operation: Operation[T]) -> list[Any]:
        if not operation.commands:
            return []
        if len(operation.commands) == 1:
            command = operation.commands[0]
            try:
                return [self.client.execute_command(*command)]  # type: ignore[no-untyped-call]
            except redis.exceptions.NoScriptError:
                if operation.script is None:
                    raise
                return [self.client.execute_command("EVAL", operation.script.source, *command[2:])]  # type: ignore[no-untyped-call]
        with self.client.pipeline(transaction=operation.atomic) as pipeline:
            for command in operation.commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            return list(pipeline.execute())

    def run(self, operation: Operation[T]) -> T:
        """Do an operation of another module (``sluice_core.store.undo_log``)."""
        return self._run(operation)

    def commit(self, draft: Draft) -> Committed:
        """Apply ``draft``, whole or not at all.

        :raises Conflict: naming the thing that has not the expected version
        """
        return self._run(operations.commit(self.keys, draft, time.time(), self.stream_length))

    def head(self) -> Head:
        """The newest change."""
        return self._run(operations.head(self.keys))

    def standing(self) -> tuple[Head, Head]:
        """The newest change, and the history that was last adopted."""
        return self._run(operations.standing(self.keys))

    def policy(self, name: str) -> tuple[Policy, int] | None:
        """A policy and its version."""
        return self._run(operations.policy(self.keys, name))

    def policies(self) -> list[tuple[Policy, int]]:
        """All policies and their versions, by ``created`` and id."""
        return self._run(operations.policies(self.keys))

    def state(self, policy: str) -> PolicyState | None:
        """What the actor of a policy wrote."""
        return self._run(operations.one_of(PolicyState, self.keys.states, policy))

    def states(self) -> dict[str, PolicyState]:
        """Policy id → what its actor wrote."""
        return self._run(operations.all_of(PolicyState, self.keys.states))

    def assignments(self) -> list[Assignment]:
        """All assignments, by id."""
        return list(self._run(operations.all_of(Assignment, self.keys.assignments)).values())

    def uploads(self) -> dict[str, Upload]:
        """Keyword → the filter registered at run time."""
        return self._run(operations.all_of(Upload, self.keys.uploads))

    def upload(self, keyword: str) -> Upload | None:
        """The filter registered as ``keyword``."""
        return self._run(operations.one_of(Upload, self.keys.uploads, keyword))

    def entries(self) -> dict[str, Entry]:
        """``kind/name`` → what is in the registry."""
        return self._run(operations.all_of(Entry, self.keys.registry))

    def version(self, name: str) -> int:
        """The version of a thing, named as in ``Draft.expect``; 0: it does not exist."""
        return self._run(operations.version(self.keys, name))

    def epochs(self) -> dict[str, int]:
        """Policy id → epoch of the last change of it or its assignments."""
        found = self._run(Operation((("HGETALL", self.keys.epochs),), lambda replies: replies[0]))
        return {name.decode(): int(epoch) for name, epoch in found.items()}

    def load(self) -> FullState:
        """All assignments and the epoch they stand at, read together."""
        return self._run(operations.load(self.keys))

    def changes_after(
        self, epoch: int, block_ms: int = 0, count: int = 500, report: NodeReport | None = None
    ) -> list[Change] | Gap:
        """The changes that follow ``epoch``, at most ``count``, waiting ``block_ms`` for the first.

        Empty when there is none.  ``report`` is written in the same round trip, before.  Changes of
        another history are not sorted out: compare :attr:`Change.history`.
        """
        return self._run(change_stream.changes_after(self.keys, epoch, self._block(block_ms), count, report))

    def nodes(self) -> list[NodeReport]:
        """What every node reported last, by node."""
        return list(self._run(operations.all_of(NodeReport, self.keys.nodes)).values())

    def report(self, report: NodeReport) -> None:
        """Keep a node's report and publish its ACK."""
        self._run(Operation(operations.report_commands(self.keys, report), operations.nothing))

    def forget_node(self, node: str) -> bool:
        """Forget a node that is no more; False when it was not known."""
        return self._run(Operation((("HDEL", self.keys.nodes, node),), lambda replies: bool(replies[0])))

    def watch(self, policy: str, seconds: float) -> None:
        """Ask for a policy's metric values to be observed for the next seconds."""
        self._run(operations.watch(self.keys, policy, time.time() + seconds))

    def watched(self, now: float) -> list[str]:
        """The policies to observe."""
        return self._run(operations.watched(self.keys, now))

    def observe(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Policy id → its metric values, for whoever looks."""
        self._run(operations.write_documents(self.keys.observed, values))

    def observed(self, policy: str) -> dict[str, Any] | None:
        """The last observed metric values of a policy."""
        return self._run(operations.read_document(self.keys.observed, policy))

    def adopt(self, by: str) -> Head:
        """Tell agents to take what there is now, by a full reload; a wiped Redis becomes a new history."""
        return self._run(operations.adopt(self.keys, by, time.time()))

    def adoptions(self) -> list[dict[str, Any]]:
        """Who adopted what when, newest first."""
        return self._run(operations.adoptions(self.keys))

    def adopted(self) -> Head:
        """The history that was last adopted."""
        return operations.parse_adopted(self._run(Operation((("GET", self.keys.adopted),), lambda replies: replies[0])))

    def host_report(self, host: str, data: Mapping[str, Any]) -> None:
        """Keep what an actor host says of itself."""
        self._run(operations.write_documents(self.keys.hosts, {host: data}))

    def hosts(self) -> dict[str, dict[str, Any]]:
        """Actor host id → its last report."""
        return self._run(operations.read_documents(self.keys.hosts))

    def ping(self) -> None:
        """Return when Redis answers."""
        self._run(Operation((("PING",),), operations.nothing))

    def close(self) -> None:
        """Close all connections."""
        self._place.close(self.client)


class AsyncStore(_Common):
    """The store for asyncio; belongs to the loop that first uses it.  See :class:`Store`."""

    def __init__(
        self, url: str, prefix: str = "sluice", stream_length: int = STREAM_LENGTH, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(url, prefix, stream_length, timeout)
        self.client: redis.asyncio.Redis = self._place.async_client(timeout)
        self._line: Line | None = None

    async def _run(self, operation: Operation[T]) -> T:
        try:
            return operation.parse(await self._replies(operation))
        except _FAULTS as error:
            raise self._place.fault(error) from error

    async def _replies(self, operation: Operation[T]) -> list[Any]:
        if not operation.commands:
            return []
        if len(operation.commands) == 1:
            command = operation.commands[0]
            try:
                return [await self.client.execute_command(*command)]  # type: ignore[no-untyped-call]
            except redis.exceptions.NoScriptError:
                if operation.script is None:
                    raise
                return [await self.client.execute_command("EVAL", operation.script.source, *command[2:])]  # type: ignore[no-untyped-call]
        async with self.client.pipeline(transaction=operation.atomic) as pipeline:
            for command in operation.commands:
                pipeline.execute_command(*command)
            return list(await pipeline.execute())

    async def _on_the_line(self, commands: tuple[Command, ...]) -> list[Any]:
        """Replies by a connection of its own, which the blocking reads of this store keep.

        Several at a time have one each.  See ``sluice_core.store.blocking_connection``.
        """
        line, self._line = self._line, None
        if line is None:
            line = await self._place.line(self.client, self.timeout)
        try:
            replies = await line.ask(commands, self.timeout)
        except BaseException:
            line.close()
            raise
        self._keep(line)
        return replies

    def _keep(self, line: Line) -> None:
        if self._line is None:
            self._line = line
        else:
            line.close()

    async def run(self, operation: Operation[T]) -> T:
        """Do an operation of another module (``sluice_core.store.fencing``)."""
        return await self._run(operation)

    async def commit(self, draft: Draft) -> Committed:
        return await self._run(operations.commit(self.keys, draft, time.time(), self.stream_length))

    async def head(self) -> Head:
        return await self._run(operations.head(self.keys))

    async def standing(self) -> tuple[Head, Head]:

        return await self._run(operations.standing(self.keys))

    async def policy(self, name: str) -> tuple[Policy, int] | None:
        return await self._run(operations.policy(self.keys, name))

    async def policies(self) -> list[tuple[Policy, int]]:
        return await self._run(operations.policies(self.keys))

    async def state(self, policy: str) -> PolicyState | None:
        return await self._run(operations.one_of(PolicyState, self.keys.states, policy))

    async def states(self) -> dict[str, PolicyState]:
        return await self._run(operations.all_of(PolicyState, self.keys.states))

    async def assignments(self) -> list[Assignment]:
        return list((await self._run(operations.all_of(Assignment, self.keys.assignments))).values())

    async def uploads(self) -> dict[str, Upload]:
        return await self._run(operations.all_of(Upload, self.keys.uploads))

    async def upload(self, keyword: str) -> Upload | None:
        return await self._run(operations.one_of(Upload, self.keys.uploads, keyword))

    async def entries(self) -> dict[str, Entry]:
        return await self._run(operations.all_of(Entry, self.keys.registry))

    async def version(self, name: str) -> int:
        return await self._run(operations.version(self.keys, name))

    async def epochs(self) -> dict[str, int]:
        found = await self._run(Operation((("HGETALL", self.keys.epochs),), lambda replies: replies[0]))
        return {name.decode(): int(epoch) for name, epoch in found.items()}

    async def load(self) -> FullState:
        return await self._run(operations.load(self.keys))

    async def changes_after(
        self, epoch: int, block_ms: int = 0, count: int = 500, report: NodeReport | None = None
    ) -> list[Change] | Gap:
        operation = change_stream.changes_after(self.keys, epoch, self._block(block_ms), count, report)
        try:
            return operation.parse(await self._on_the_line(operation.commands))
        except _FAULTS as error:
            raise self._place.fault(error) from error

    async def nodes(self) -> list[NodeReport]:
        return list((await self._run(operations.all_of(NodeReport, self.keys.nodes))).values())

    async def report(self, report: NodeReport) -> None:
        await self._run(Operation(operations.report_commands(self.keys, report), operations.nothing))

    async def forget_node(self, node: str) -> bool:
        return await self._run(Operation((("HDEL", self.keys.nodes, node),), lambda replies: bool(replies[0])))

    async def watch(self, policy: str, seconds: float) -> None:
        await self._run(operations.watch(self.keys, policy, time.time() + seconds))

    async def watched(self, now: float) -> list[str]:
        return await self._run(operations.watched(self.keys, now))

    async def observe(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        await self._run(operations.write_documents(self.keys.observed, values))

    async def observed(self, policy: str) -> dict[str, Any] | None:
        return await self._run(operations.read_document(self.keys.observed, policy))

    async def adopt(self, by: str) -> Head:
        return await self._run(operations.adopt(self.keys, by, time.time()))

    async def adoptions(self) -> list[dict[str, Any]]:
        return await self._run(operations.adoptions(self.keys))

    async def adopted(self) -> Head:
        return operations.parse_adopted(
            await self._run(Operation((("GET", self.keys.adopted),), lambda replies: replies[0]))
        )

    async def host_report(self, host: str, data: Mapping[str, Any]) -> None:
        await self._run(operations.write_documents(self.keys.hosts, {host: data}))

    async def hosts(self) -> dict[str, dict[str, Any]]:
        return await self._run(operations.read_documents(self.keys.hosts))

    async def ping(self) -> None:
        await self._run(Operation((("PING",),), operations.nothing))

    async def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        await self._place.aclose(self.client)
