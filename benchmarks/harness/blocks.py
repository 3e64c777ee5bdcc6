"""Blocks of requests against each instance of a trio, and their cost."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.harness.pairs import Cycle, rotated

from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.errors import PeerError

#: One request by a client; the number counts up over all blocks.  It raises if the answer is wrong.
Work = Callable[[SwiftHttp, int], None]
Works = Mapping[str, Work]


@dataclass(slots=True)
class Block:
    """The cost of ``len(latencies)`` requests; ``cpu`` in seconds by group of processes."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def latency(self) -> float:
        """Median seconds of a request."""
        return statistics.median(self.latencies)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.latencies) / self.seconds

    def cpu_per_request(self, *groups: str) -> float:
        """CPU seconds of ``groups`` for one request."""
        return sum(self.cpu[group] for group in groups) / len(self.latencies)


class Instances(Protocol):
    """Instances that are called in turns, by name."""

    def client(self, name: str) -> SwiftHttp:
        """A client with a token, for threads."""

    def cpu(self, name: str) -> dict[str, float]:
        """CPU seconds so far, by group of processes."""


class Bench:
    """Clients for each instance, and a running number for names."""

    def __init__(self, trio: Instances) -> None:
        self.trio = trio
        self._number = 0

    def block(self, name: str, work: Work, count: int, concurrency: int = 1) -> Block:
        """``count`` requests by ``concurrency`` clients, each on a kept, warm connection."""
        client = self.trio.client(name)
        block = Block()
        faults: list[BaseException] = []
        before: dict[str, float] = {}
        begin = self._number
        self._number += count
        # the clocks are read after all clients have connected and before the first request
        ready = threading.Barrier(concurrency, lambda: before.update(self.trio.cpu(name), at=time.perf_counter()))

        def serve(share: Sequence[int]) -> None:
            latencies = []
            try:
                client.request("HEAD")  # opens this thread's connection
                ready.wait()
                for number in share:
                    asked = time.perf_counter()
                    work(client, begin + number)
                    latencies.append(time.perf_counter() - asked)
            except (PeerError, threading.BrokenBarrierError) as error:
                faults.append(error)
                ready.abort()
            finally:
                client.close()
            block.latencies += latencies

        threads = [
            threading.Thread(target=serve, args=(range(first, count, concurrency),)) for first in range(concurrency)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]
        block.seconds = time.perf_counter() - before.pop("at")
        after = self.trio.cpu(name)
        block.cpu = {group: after[group] - before[group] for group in after}
        return block

    def cycles(
        self, works: Works, cycles: int, count: int, concurrency: int = 1, first: int = 0
    ) -> list[dict[str, Block]]:
        """``cycles`` times one block for each instance, in an order that changes from cycle to cycle.

        ``first`` is the number of the first of them, for a series that is measured in several calls.
        """
        return [
            {name: self.block(name, works[name], count, concurrency) for name in rotated(number)}
            for number in range(first, first + cycles)
        ]

    def warm(self, works: Works, count: int) -> None:
        """Requests that fill the caches of new workers and are not counted."""
        for name, work in works.items():
            self.block(name, work, count)


def of(cycles: Sequence[Mapping[str, Block]], value: Callable[[Block], float]) -> list[Cycle]:
    """One number of each block."""
    return [{name: value(block) for name, block in cycle.items()} for cycle in cycles]
