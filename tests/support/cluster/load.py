"""Clients that load a cluster, in a process of their own, and how many bytes they moved in each second.

    with Load(Spec(["127.0.0.1:8080"], token, "/v1/AUTH_a", "c", sizes=(1 << 20,))) as load:
        load.await_seconds(5)
        print(load.rates())

Each client requests (or sends) one object after the other, on a connection that it keeps.  When a proxy stops, its
clients use the next one, and return when it runs again.  Bytes of a body count in the wall-clock second in which
they arrived, or were read by the proxy (see :mod:`tests.support.cluster.sent_bytes`).
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from tests.support.cluster.sent_bytes import Link, Sent

from sluice_core.errors import PeerError

#: Bytes of an endless upload.
ENDLESS: Final = 1 << 30
_CHUNK: Final = 64 * 1024
_PAUSE: Final = 0.1
_TIMEOUT: Final = 90.0
#: Seconds between two tries to return to a proxy that stopped.
_LOOK_BACK: Final = 0.5
#: Seconds after its end at which a second is reported.
_LATE: Final = 0.1
_PATIENCE: Final = 30.0


@dataclass(frozen=True, slots=True)
class Spec:
    """The requests of one tenant's clients.

    ``places`` are ``host:port`` of proxies, used in turn; object ``i`` of a size is named ``<size>-<i>``.
    """

    places: Sequence[str]
    token: str
    account: str
    container: str
    method: str = "GET"
    connections: int = 8
    sizes: Sequence[int] = (1 << 20,)
    objects: int = 4
    seed: int = 0


@dataclass(slots=True)
class Second:
    """The counts of one wall-clock second."""

    bytes: int = 0
    requests: int = 0
    errors: int = 0
    last_error: str = ""


class Load:
    """The clients of one tenant; a context manager."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        #: Unix second → its counts; complete ones only.
        self.seconds: dict[int, Second] = {}
        self._news = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> Self:
        """Start the load."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster.load"],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(self.spec)) + "\n")
        self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def stop(self) -> None:
        """Stop all clients."""
        if self._process is None or self._reader is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def await_second(self, second: int) -> None:
        """Wait until the counts of that wall-clock second are complete.

        :raises PeerError: when they never are
        """
        with self._news:
            limit = max(0.0, second - time.time()) + _PATIENCE
            if not self._news.wait_for(lambda: any(one >= second for one in self.seconds), limit):
                raise PeerError(f"the clients of `{self.spec.account}` say nothing")

    def rates(self, first: int = 0, last: int = 1 << 62) -> dict[int, float]:
        """Wall-clock second → bytes per second, ``first`` to ``last`` included."""
        with self._news:
            return {at: float(one.bytes) for at, one in sorted(self.seconds.items()) if first <= at <= last}

    def errors(self) -> tuple[int, str]:
        """The number of failed requests, and the last error."""
        with self._news:
            found = [one for one in self.seconds.values() if one.errors]
            return sum(one.errors for one in found), found[-1].last_error if found else ""

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            data = json.loads(line)
            at = data.pop("at")
            with self._news:
                self.seconds[at] = Second(**data)
                self._news.notify_all()


class _Clients:
    """The client process: threads, and their counts."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._seconds: dict[int, Second] = {}
        self._body = memoryview(bytes(range(256)) * (_CHUNK // 256))
        self._stop = threading.Event()
        self._sent = Sent()

    def run(self) -> None:
        """Report each second on standard output; until standard input ends."""
        for number in range(self._spec.connections):
            threading.Thread(target=self._client, args=(number,), daemon=True).start()
        threading.Thread(target=self._wait_for_end, daemon=True).start()
        told = int(time.time())
        while not self._stop.wait(max(0.0, told + 1 - time.time())):
            taken = self._sent.newly_taken()
            self._stop.wait(max(0.0, told + 1 + _LATE - time.time()))
            with self._lock:
                found = self._seconds.pop(told, Second())
            found.bytes += taken
            print(json.dumps({"at": told, **asdict(found)}), flush=True)
            told += 1

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self._stop.set()

    def _client(self, number: int) -> None:
        places = self._spec.places
        turn, looked, rng = number, 0.0, random.Random(f"{self._spec.seed}-{number}")
        connection: _Connection | None = None
        buffer = memoryview(bytearray(_CHUNK))
        while not self._stop.is_set():
            size = rng.choice(list(self._spec.sizes))
            try:
                if turn != number and time.monotonic() - looked > _LOOK_BACK:
                    looked = time.monotonic()
                    back = self._try_connect(places[number % len(places)])
                    if back is not None:
                        if connection is not None:
                            connection.close()
                        connection, turn = back, number
                if connection is None:
                    connection = self._connect(places[turn % len(places)])
                self._request(connection, size, rng.randrange(self._spec.objects), number, buffer)
            except (OSError, http.client.HTTPException) as error:
                self._failed(repr(error))
                if connection is not None:
                    connection.close()
                connection, turn, looked = None, turn + 1, time.monotonic()
                self._stop.wait(_PAUSE)

    def _connect(self, place: str) -> _Connection:
        connection = _Connection(place, self._sent)
        connection.connect()
        return connection

    def _try_connect(self, place: str) -> _Connection | None:
        try:
            return self._connect(place)
        except OSError:
            return None

    def _request(self, link: _Connection, size: int, which: int, number: int, buffer: memoryview) -> None:
        spec = self._spec
        named = {"X-Auth-Token": spec.token}
        path = f"{spec.account}/{spec.container}/"
        if spec.method == "PUT":
            link.putrequest("PUT", quote(f"{path}put-{number}"))
            for name, value in (*named.items(), ("Content-Length", str(size))):
                link.putheader(name, value)
            link.endheaders()
            link.send_body(self._body, size)
        else:
            link.request("GET", quote(f"{path}{size}-{which}"), headers=named)
        with link.getresponse() as answer:
            while count := answer.readinto(buffer):
                if spec.method != "PUT":
                    self._moved(count)
        if answer.status >= 300:
            self._failed(f"status {answer.status}")
            self._stop.wait(_PAUSE)
            return
        link.taken()
        with self._lock:
            self._seconds.setdefault(int(time.time()), Second()).requests += 1

    def _moved(self, count: int) -> None:
        with self._lock:
            self._seconds.setdefault(int(time.time()), Second()).bytes += count

    def _failed(self, reason: str) -> None:
        with self._lock:
            found = self._seconds.setdefault(int(time.time()), Second())
            found.errors += 1
            found.last_error = reason


class _Connection(http.client.HTTPConnection):
    """A connection whose sent bytes are tracked."""

    def __init__(self, place: str, sent: Sent) -> None:
        self._sent = sent
        self._link: Link | None = None
        super().__init__(place, timeout=_TIMEOUT)

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _CHUNK)
        self._link = self._sent.add(self.sock)

    def close(self) -> None:
        if self._link is not None:
            self._sent.drop(self._link)
        super().close()

    def send_body(self, part: memoryview, size: int) -> None:
        """Send ``part`` repeatedly until ``size`` bytes were sent."""
        assert self._link is not None
        left = size
        while left:
            count = self.sock.send(part[:left])
            self._link.sent += count
            left -= count

    def taken(self) -> None:
        """Count all sent bytes as read: the response arrived."""
        if self._link is not None:
            self._sent.taken(self._link)


def totals(loads: Mapping[str, Load], first: int, last: int) -> dict[int, float]:
    """Wall-clock second → bytes per second of all loads together."""
    found: Counter[int] = Counter()
    for load in loads.values():
        for at, rate in load.rates(first, last).items():
            found[at] += int(rate)
    return {at: float(rate) for at, rate in sorted(found.items())}


def main() -> int:
    """The process of :class:`Load`: a :class:`Spec` on the first line of standard input."""
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    _Clients(Spec(**given)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
