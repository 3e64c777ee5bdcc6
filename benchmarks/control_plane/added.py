"""Reads of hosts from Redis after a policy is added, as Redis reports them."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import redis.asyncio

from sluice_core.errors import PeerError

#: Command → position of the first requested field, after the key.
_FIELDS: Final = {"HGET": 2, "HMGET": 2}
#: Commands that read a whole hash; counted as this many documents, so they are noticed.
_WHOLE: Final = frozenset({"HGETALL", "HVALS", "HKEYS", "HSCAN"})
A_RELOAD: Final = 1_000_000
_COMMITS: Final = frozenset({"EVAL", "EVALSHA"})


@dataclass(slots=True)
class Added:
    """Added policies: seconds until each was read, CPU of all, documents that were read for all."""

    seconds: list[float] = field(default_factory=list)
    cpu: float = 0.0
    documents: int = 0

    @property
    def middle(self) -> float:
        """Median seconds of one."""
        return statistics.median(self.seconds)

    @property
    def cpu_each(self) -> float:
        """CPU seconds of one; never 0, because ratios are computed from it."""
        return max(self.cpu, 1e-6) / len(self.seconds)


class Reads:
    """Follows reads of the hash ``key``, and the times of commits."""

    def __init__(self, url: str, key: str) -> None:
        self._client = redis.asyncio.Redis.from_url(url, protocol=2)
        self._key = key
        self._monitor = contextlib.AsyncExitStack()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._read: dict[str, float] = {}
        self._committed: dict[str, float] = {}
        #: Requested documents.
        self.documents = 0

    async def __aenter__(self) -> Self:
        monitor = self._client.monitor()
        await self._monitor.enter_async_context(monitor)
        self._task = asyncio.get_running_loop().create_task(self._listen(monitor))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._monitor.aclose()
        await self._client.aclose()

    async def delay(self, name: str, limit: float) -> float:
        """Seconds from the commit of policy ``name`` until a host read it.

        :raises PeerError: if no host reads it within ``limit`` seconds
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit), self._changed:
                await self._changed.wait_for(lambda: name in self._read and name in self._committed)
                return self._read[name] - self._committed[name]
        raise PeerError(f"nobody read policy `{name}` within {limit:g} s")

    async def _listen(self, monitor: Any) -> None:
        async for said in monitor.listen():
            async with self._changed:
                self.take(said)
                self._changed.notify_all()

    def take(self, said: Mapping[str, Any]) -> None:
        """Process one command of MONITOR: ``time`` (unix seconds), ``client_type`` and ``command``."""
        if said["client_type"] == "lua":  # the commands of a script belong to the command that called it
            return
        words = str(said["command"]).split(" ")
        verb = words[0].upper()
        if verb in _COMMITS and self._key in words:
            self._note_commit(words, float(said["time"]))
        elif verb in _WHOLE and words[1:2] == [self._key]:
            self.documents += A_RELOAD
        elif verb in _FIELDS and words[1:2] == [self._key]:
            asked = words[_FIELDS[verb] :]
            self.documents += len(asked)
            for name in asked:
                self._read.setdefault(name, float(said["time"]))

    def _note_commit(self, words: Sequence[str], at: float) -> None:
        for word in words:
            self._committed.setdefault(word, at)
