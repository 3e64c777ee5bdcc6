"""What is seen of bandwidth: by clients over some seconds, and by the nodes, which count every byte."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, Self

from sluice_aio.load import Load
from sluice_core.bandwidth import NodeLoad
from sluice_core.bus import Consumer
from sluice_core.describe import PROXY
from sluice_core.errors import PeerError
from sluice_core.keys import BANDWIDTH_EXCHANGE, load_routing_key

#: Of a mean over some seconds, on a machine that others use too.
CLOSE: Final = 0.1
SECONDS: Final = 5
WINDOWS: Final = 6
#: A worker tells its agent once a second, and that the broker as soon as the next second has ended.
_ROUND_TRIP: Final = 3
_LIMIT: Final = 20.0


def means(loads: Sequence[Load], settle: int = 3, seconds: int = SECONDS) -> list[float]:
    """Bytes per second of each load after some seconds of settling."""
    for load in loads:
        load.await_second(0)  # its process may take a while to start
    first = int(time.time()) + settle
    for load in loads:
        load.await_second(first + seconds)
    return [statistics.mean(load.rates(first, first + seconds).values()) for load in loads]


def settled(loads: Sequence[Load], expected: Sequence[float], seconds: int = SECONDS) -> list[float]:
    """Bytes per second in the first of some windows in which all are as expected, else in the last one."""
    rates: list[float] = []
    for _ in range(WINDOWS):
        rates = means(loads, settle=2, seconds=seconds)
        if all(abs(rate - wanted) <= CLOSE * wanted for rate, wanted in zip(rates, expected, strict=True)):
            break
    return rates


class Heard:
    """What all agents tell of bandwidth while it is entered; a context manager.

    Workers count on for ever, so what is told late is not lost: sums are exact where no message was.
    """

    def __init__(self, amqp_url: str) -> None:
        self._url = amqp_url
        self._news = threading.Condition()
        self._moved: Counter[tuple[str, str, str, str, str, int]] = Counter()
        #: Node → the last second that it told of, and the sides that it serves.
        self._at: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._over: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_LIMIT):
            raise PeerError("the broker does not answer")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def moved(self, account: str, method: str, side: str = PROXY, container: str | None = None) -> float:
        """Bytes that all nodes of a side counted for ``account``, or for what is counted as its ``container``."""
        with self._news:
            return sum(
                size
                for (_, where, name, inner, how, _), size in self._moved.items()
                if (where, name, how) == (side, account, method) and container in (None, inner)
            )

    def by_node(self, account: str, method: str, side: str) -> dict[str, float]:
        """Node → bytes that it counted for ``account``."""
        found: Counter[str] = Counter()
        with self._news:
            for (node, where, name, _, how, _), size in self._moved.items():
                if (where, name, how) == (side, account, method):
                    found[node] += int(size)
        return {node: float(size) for node, size in found.items()}

    def policies(self, account: str) -> set[int]:
        """Indices of the storage policies under which bytes of ``account`` were counted."""
        with self._news:
            return {policy for (_, _, name, _, _, policy), size in self._moved.items() if name == account and size}

    def await_all(self, side: str = PROXY) -> None:
        """Wait until all nodes of a side have told what they counted up to now; they must hold something back.

        :raises PeerError: when they do not
        """
        until = time.time() + _ROUND_TRIP

        def told() -> bool:
            ends = [at for at, sides in self._at.values() if side in sides]
            return bool(ends) and min(ends) >= until

        with self._news:
            if not self._news.wait_for(told, _ROUND_TRIP + _LIMIT):
                raise PeerError(f"not all nodes tell what they move: {self._at}")

    # -- in the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._loop.close()

    async def _listen(self) -> None:
        self._over = asyncio.Event()
        consumer = Consumer(self._url, self._take, [load_routing_key("#")], BANDWIDTH_EXCHANGE)
        consumer.start()
        await consumer.settled()
        self._ready.set()
        await self._over.wait()
        await consumer.close()

    def _take(self, _: str, body: bytes) -> None:
        load = NodeLoad.decode(body)
        with self._news:
            self._at[load.node] = (load.at, load.sides)
            for row in load.rows:
                place = (load.node, row.side, row.account, row.container, row.method, row.policy)
                self._moved[place] += round(row.moved)
            self._news.notify_all()


__all__ = ["CLOSE", "SECONDS", "WINDOWS", "Heard", "means", "settled"]
