"""Clients of the API on kept connections, and the cost of their requests."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.pairs import quantile

from sluice_core.errors import PeerError

_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and its expected answer: the status, and the number of ``marks`` in the body."""

    path: str
    body: bytes | None = None
    status: int = 200
    mark: bytes = b'"enforced":'
    marks: int = 1


#: The request of each number; numbers count up over the whole measurement.
Asks = Callable[[int], Ask]


@dataclass(slots=True)
class Taken:
    """The cost of some requests; CPU in seconds by group of processes."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.latencies) / self.seconds

    def cpu_ms(self, group: str) -> float:
        """CPU milliseconds of ``group`` for one request."""
        return self.cpu[group] / len(self.latencies) * 1000

    def latency_ms(self, fraction: float) -> float:
        """That quantile of the latencies."""
        return quantile(self.latencies, fraction) * 1000


class Clients:
    """Clients of one server.

    :param groups: name → process ids whose CPU is counted
    """

    def __init__(self, port: int, token: str, groups: Mapping[str, Sequence[int]]) -> None:
        self._port = port
        self._headers = {"X-Auth-Token": token, "Content-Type": "application/json"}
        self._groups = groups
        self._number = 0

    def run(self, asks: Asks, count: int, clients: int) -> Taken:
        """``count`` requests by ``clients`` at a time, each with its own warm connection.

        :raises PeerError: if an answer is wrong, or missing
        """
        taken, faults = Taken(), list[Exception]()
        first, self._number = self._number, self._number + count
        begun: dict[str, float] = {}
        # the clocks are read after all clients have connected and before the first request
        ready = threading.Barrier(clients, lambda: begun.update(self._cpu(), at=time.perf_counter()))

        def serve(numbers: Sequence[int]) -> None:
            try:
                with self._connection() as connection:
                    ready.wait()
                    taken.latencies.extend([self._timed(connection, asks(number)) for number in numbers])
            except (PeerError, threading.BrokenBarrierError) as error:
                faults.append(error)
                ready.abort()

        shares = [range(first + one, first + count, clients) for one in range(clients)]
        threads = [threading.Thread(target=serve, args=(share,)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise next((one for one in faults if isinstance(one, PeerError)), faults[0])
        taken.seconds = time.perf_counter() - begun["at"]
        taken.cpu = {group: used - begun[group] for group, used in self._cpu().items()}
        return taken

    def _cpu(self) -> dict[str, float]:
        return {group: cpu_seconds(pids) for group, pids in self._groups.items()}

    def _timed(self, connection: http.client.HTTPConnection, ask: Ask) -> float:
        begun = time.perf_counter()
        status, body = self._answer(connection, ask)
        seconds = time.perf_counter() - begun
        if status != ask.status or body.count(ask.mark) != ask.marks:
            found = f"{status} with {body.count(ask.mark)} of `{ask.mark.decode()}`"
            raise PeerError(f"`{ask.path}` answered {found}, expected {ask.status} with {ask.marks}: {body[:300]!r}")
        return seconds

    def _answer(self, connection: http.client.HTTPConnection, ask: Ask) -> tuple[int, bytes]:
        try:
            connection.request("GET" if ask.body is None else "POST", ask.path, ask.body, self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise PeerError(f"`{ask.path}`: {error or type(error).__name__}") from error

    @contextlib.contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE)
        try:
            self._answer(connection, Ask("/health"))
            if connection.sock is None:
                raise PeerError("the server does not keep connections")
            connection.auto_open = 0  # an ended connection is a fault, not a reason for a new one
            yield connection
        finally:
            connection.close()
