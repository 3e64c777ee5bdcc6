"""The store: the client of Redis, for threads (:class:`Store`) and for asyncio (:class:`AsyncStore`).

Both have the same methods, one for each operation (``sluice_core.store.operations``); a method of :class:`AsyncStore`
is awaited.  Every fault of Redis or of the network, time-outs included, becomes a :class:`PeerError`.  The store does
not repeat attempts: a commit whose answer was lost may have happened, and only the caller can decide.
Constructors do not connect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

import redis
import redis.asyncio
import redis.exceptions

from sluice_core.store import events, operations
from sluice_core.store.blocking_connection import BlockingConnection
from sluice_core.store.change_stream import changes_after
from sluice_core.store.commit import commit
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation
from sluice_core.store.redis_urls import RedisAddress

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds for connecting and for every answer; a blocking read stays below it.
TIMEOUT: Final = 5.0
_FAULTS: Final = (redis.exceptions.RedisError, OSError, asyncio.IncompleteReadError)


class _Method(Generic[P, T]):
    """An operation as a method of both stores."""

    def __init__(self, build: Callable[Concatenate[Keys, P], Operation[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, store: Store, owner: type[Store]) -> Callable[P, T]: ...
    @overload
    def __get__(self, store: AsyncStore, owner: type[AsyncStore]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, store: Any, owner: Any) -> Any:
        return lambda *args, **kwargs: store.run(self._build(store.keys, *args, **kwargs))


class _Operations:
    """The address of Redis, the time-out, and the methods of both stores.

    :param url: one of the forms in ``sluice_core.store.redis_urls``
    :param prefix: of all keys
    :param timeout: seconds
    """

    def __init__(self, url: str, prefix: str = "sluice", timeout: float = TIMEOUT) -> None:
        self.keys = Keys(prefix)
        self.timeout = timeout
        self._address = RedisAddress(url)

    commit = _Method(commit)
    head = _Method(operations.head)
    head_and_adopted = _Method(operations.head_and_adopted)
    adopt = _Method(operations.adopt)
    policy = _Method(operations.policy)
    policies = _Method(operations.policies)
    state = _Method(operations.STATES.read)
    states = _Method(operations.STATES.read_all)
    assignments = _Method(operations.assignments)
    uploads = _Method(operations.UPLOADS.read_all)
    upload = _Method(operations.UPLOADS.read)
    entries = _Method(operations.ENTRIES.read_all)
    version = _Method(operations.version)
    epochs = _Method(operations.epochs)
    load = _Method(operations.load)
    nodes = _Method(operations.nodes)
    report = _Method(operations.report)
    forget_node = _Method(operations.NODES.delete)
    watch = _Method(operations.watch)
    watched = _Method(operations.watched)
    observe = _Method(operations.observe)
    observed = _Method(operations.observed)
    host_report = _Method(operations.host_report)
    hosts = _Method(operations.hosts)
    service_states = _Method(operations.SERVICE_STATES.read_all)
    write_service_states = _Method(operations.write_service_states)
    changes_after = _Method(changes_after)
    append_events = _Method(events.append_events)
    events_after = _Method(events.events_after)


class Store(_Operations):
    """The store for threads; safe to share between them, not across a fork."""

    def __init__(self, url: str, prefix: str = "sluice", timeout: float = TIMEOUT) -> None:
        super().__init__(url, prefix, timeout)
        self.client: redis.Redis = self._address.client(timeout)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation.

        :raises PeerError: for a fault of Redis or of the network
        """
        try:
            return operation.parse(self._replies(operation))
        except _FAULTS as error:
            raise self._address.peer_error(error) from error

    def _replies(self, operation: Operation[T]) -> list[Any]:
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

    def close(self) -> None:
        """Close all connections."""
        self._address.close(self.client)


class AsyncStore(_Operations):
    """The store for asyncio; belongs to the loop that first uses it.  See :class:`Store`."""

    def __init__(self, url: str, prefix: str = "sluice", timeout: float = TIMEOUT) -> None:
        super().__init__(url, prefix, timeout)
        self.client: redis.asyncio.Redis = self._address.async_client(timeout)
        self._spare: BlockingConnection | None = None

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation.

        :raises PeerError: for a fault of Redis or of the network
        """
        try:
            return operation.parse(await self._replies(operation))
        except _FAULTS as error:
            raise self._address.peer_error(error) from error

    async def _replies(self, operation: Operation[T]) -> list[Any]:
        if operation.blocking:
            return await self._blocking_replies(operation.commands)
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

    async def _blocking_replies(self, commands: tuple[Command, ...]) -> list[Any]:
        """Return replies over a separate connection, which is kept for the next blocking read.

        Concurrent reads have one connection each.  See ``sluice_core.store.blocking_connection``.
        """
        connection, self._spare = self._spare, None
        if connection is None:
            connection = await self._address.blocking_connection(self.client, self.timeout)
        try:
            replies = await connection.execute(commands, self.timeout)
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return replies

    def _keep(self, connection: BlockingConnection) -> None:
        if self._spare is None:
            self._spare = connection
        else:
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        await self._address.aclose(self.client)


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]], again: float) -> None:
    """Cancel all tasks and wait for them; cancel those left after ``again`` seconds once more, and so on.

    redis-py loses a cancellation that meets the end of a call: the task then continues.
    A task that takes longer than ``again`` seconds to end must tolerate another cancellation meanwhile.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again)
