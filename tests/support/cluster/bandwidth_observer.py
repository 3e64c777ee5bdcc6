"""Measurements of bandwidth: by clients over some seconds, and by the nodes, which count every byte."""

from __future__ import annotations

import asyncio
import math
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from tests.support.cluster.load import Load

from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import BANDWIDTH_EXCHANGE, load_routing_key
from sluice_core.describe import PROXY
from sluice_core.errors import PeerError
from sluice_core.messages.bandwidth import NodeLoad

#: Relative error of a mean over some seconds, on a shared machine.
CLOSE: Final = 0.1
SECONDS: Final = 4
WINDOWS: Final = 6
#: A worker reports to its agent once a second, so an agent's report of this second's end is complete; and one more.
_ROUND_TRIP: Final = 2
_LIMIT: Final = 20.0

T = TypeVar("T")


def means(loads: Sequence[Load], settle: int = 3, seconds: int = SECONDS) -> list[float]:
    """Bytes per second of each load after some seconds of settling."""
    for load in loads:
        load.await_second(0)  # its process may take a while to start
    first = int(time.time()) + settle
    for load in loads:
        load.await_second(first + seconds)
    return [statistics.mean(load.rates(first, first + seconds).values()) for load in loads]


def windows(loads: Sequence[Load], first: int, count: int, seconds: int = SECONDS) -> list[list[float]]:
    """Bytes per second of each load in ``count`` windows, one after the other, from wall-clock second ``first`` on."""
    begins = range(first, first + count * seconds, seconds)
    for load in loads:
        load.await_second(first + count * seconds - 1)
    return [[statistics.mean(load.rates(at, at + seconds - 1).values()) for load in loads] for at in begins]


def first_good(measure: Callable[[], T], good: Callable[[T], bool]) -> T:
    """The first good measurement, else the last of several."""
    for _ in range(WINDOWS - 1):
        found = measure()
        if good(found):
            return found
    return measure()


def settled(loads: Sequence[Load], expected: Sequence[float], seconds: int = SECONDS) -> list[float]:
    """Bytes per second in the first window with all expected rates, else in the last one."""
    return first_good(lambda: means(loads, settle=2, seconds=seconds), _as_expected(expected))


def _as_expected(expected: Sequence[float]) -> Callable[[list[float]], bool]:
    return lambda rates: all(abs(rate - one) <= CLOSE * one for rate, one in zip(rates, expected, strict=True))


class Heard:
    """All agents' reports of bandwidth while it is entered; a context manager.

    Workers count cumulatively, so late reports are not lost: sums are exact even if a message is missing.
    """

    def __init__(self, amqp_url: str) -> None:
        self._url = amqp_url
        self._news = threading.Condition()
        self._loads: list[NodeLoad] = []
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

    def moved(self, account: str, method: str, side: str = PROXY) -> float:
        """Bytes that all nodes of a side counted for ``account``."""
        with self._news:
            return sum(self._sums(account, method, side, -math.inf, math.inf).values())

    def rates(self, account: str, method: str, side: str, seconds: int = SECONDS) -> dict[str, float]:
        """Node → bytes per second that it counts for ``account`` in the coming seconds.

        :raises PeerError: when a node does not report
        """
        first = int(time.time()) + 1.0
        self._await(side, first + seconds)
        with self._news:
            found = self._sums(account, method, side, first, first + seconds)
        return {node: size / seconds for node, size in found.items()}

    def settled(self, accounts: Sequence[str], method: str, expected: Sequence[float]) -> list[float]:
        """Bytes per second that the proxies count, as :func:`settled`.

        :raises PeerError: when a node does not report
        """

        def measure() -> list[float]:
            return [sum(self.rates(account, method, PROXY).values()) for account in accounts]

        return first_good(measure, _as_expected(expected))

    def await_all(self, side: str = PROXY) -> None:
        """Wait until all nodes of a side have reported their counts up to now; they must throttle some flow.

        :raises PeerError: when they do not
        """
        self._await(side, time.time() + _ROUND_TRIP)

    def _await(self, side: str, until: float) -> None:
        def told() -> bool:
            last = {load.node: load for load in self._loads}
            ends = [load.at for load in last.values() if side in load.sides]
            return bool(ends) and min(ends) >= until

        with self._news:
            if not self._news.wait_for(told, until - time.time() + _LIMIT):
                raise PeerError(f"not all nodes tell what they move: {self._loads[-20:]}")

    def _sums(self, account: str, method: str, side: str, after: float, last: float) -> Counter[str]:
        found: Counter[str] = Counter()
        for load in self._loads:
            for row in load.rows if after < load.at <= last else ():
                if (row.side, row.account, row.method) == (side, account, method):
                    found[load.node] += round(row.moved)
        return found

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
            self._loads.append(load)
            self._news.notify_all()


__all__ = ["CLOSE", "SECONDS", "WINDOWS", "Heard", "first_good", "means", "settled", "windows"]
