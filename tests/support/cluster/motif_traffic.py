"""Clients that write, read, copy and change sources of objects with motifs, during continuous contractions.

Contents are one record repeated, so that each byte of an object identifies its write. The allowed results of a read
follow from the writes alone: of each source a write that had not ended before the read began, and had begun at its end.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.cluster.motifs import motif
from tests.support.cluster.object_files import Download, download

from sluice_aio.base.setup import EC21
from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_client import DaemonAway, DaemonClient
from sluice_middleware.motifs.daemon_protocol import CONTRACT, WorkerCall
from sluice_middleware.wsgi.response import RefusedRequest

RECORD: Final = 16
#: Bytes of a client's write: several pieces of a stream.
SIZE: Final = RECORD * 20_000
_ACCOUNT: Final = "AUTH_test"
_NAMES: Final = re.compile(r"`[^`]*`|[0-9.]+")


def _reason(answer: Any) -> str:
    """The reason of a refusal, without names and numbers."""
    return "" if answer.status < 400 else f": {_NAMES.sub('…', answer.body.decode())[:90]}"


#: Objects with motifs, and those of them whose bytes clients wrote.
WITH_MOTIFS: Final = ("both", "three", "kept", "cold")
WITH_OWN_BYTES: Final = ("kept", "cold")


@dataclass
class Write:
    """A client's PUT: its record, its start, and the time at which it had certainly ended."""

    record: bytes
    began: float
    ended: float = float("inf")


@dataclass
class Written:
    """The writes of one object, by one writer, one after the other."""

    writes: list[Write] = field(default_factory=list)

    def allowed(self, begin: float, end: float) -> set[bytes]:
        """The records that a read from ``begin`` to ``end`` may find."""
        certain = [one for one in self.writes if one.ended < begin]
        first = self.writes.index(certain[-1]) if certain else 0
        return {one.record for one in self.writes[first:] if one.began <= end}


class MotifTraffic:
    """Objects of a container with motifs, and the clients' actions until :meth:`stop`.

    ``both`` is made of ``first`` and ``second``, ``three`` of ``both`` and ``second``; ``kept`` has the bytes that
    ``origin`` once had, and those of ``cold`` are stored under another storage policy.

    :param motif_socket: of the daemon that contracts
    """

    derived: Final = {"both": ("first", "second"), "three": ("both", "second")}

    def __init__(self, swift: SwiftHttp, motif_socket: str, container: str, seed: int = 1) -> None:
        self.swift = swift
        self.container = container
        self.written = {name: Written() for name in ("first", "second", "origin", *WITH_OWN_BYTES)}
        self.wrong: list[str] = []
        self.counts: dict[str, int] = {}
        self._daemon = DaemonClient(motif_socket)
        self._seed = seed
        self._number = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    # Actions.

    def prepare(self) -> None:
        """Write all objects, with their motifs."""
        assert self.swift.request("PUT", self.container).status in (201, 202)
        for name in ("first", "second", "origin"):
            self._write(name)
        for name, sources in self.derived.items():
            wanted, made = self._wanted(name), self._concat(sources)
            self._until_stored(name, lambda: self._put(name, wanted, x_object_motif=made))  # noqa: B023
        self._until_stored("kept", self._write_kept)
        self._until_stored("cold", self._write_cold)

    def _until_stored(self, name: str, write: Callable[[], Any]) -> None:
        """Retry: a Redis that was just started grants no leases for some seconds, so motifs cannot be attached."""
        end = time.monotonic() + 30
        while True:
            write()
            if self.swift.request("HEAD", f"{self.container}/{name}").status == 200:
                return
            assert time.monotonic() < end, f"`{name}` is not stored"
            time.sleep(0.5)

    def start(self) -> None:
        """Start; each kind of client has a thread of its own."""
        writers = [
            lambda draws: self._write("first"),
            lambda draws: self._write("second"),
            self._write_origin,
            self._write_cold,
        ]
        works: Sequence[tuple[Callable[[random.Random], None], float]] = (
            *((work, 1.5) for work in writers),
            (self._contract, 0.05),
            (self._post, 0.5),
            (self._read_any, 0.02),
            (self._read_any, 0.02),
        )
        for number, (work, pause) in enumerate(works):
            thread = threading.Thread(target=self._repeat, args=(work, pause, random.Random(self._seed + number)))
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop; errors are in ``wrong``."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[random.Random], None], pause: float, draws: random.Random) -> None:
        while not self._over.wait(pause * draws.uniform(0.5, 1.5)):
            try:
                work(draws)
            except PeerError:
                self._count("connection lost")
            except Exception as error:
                self.wrong.append(f"{error!r}")
                raise
        self.swift.close()

    def _write_origin(self, draws: random.Random) -> None:
        self._write("origin")
        if draws.random() < 0.5:
            self._write_kept()

    def _write(self, name: str, record: bytes | None = None, **headers: str) -> None:
        with self._lock:
            self._number += 1
            content = record or b"<%s.%08d>" % (name[:5].encode().ljust(5, b"_"), self._number)
        write = Write(content, time.monotonic())
        self.written[name].writes.append(write)
        answer = self._put(name, content * (SIZE // RECORD), **headers)
        self._count(f"PUT {answer.status}{_reason(answer)}")
        if answer.status == 201:
            write.ended = time.monotonic()

    def _write_kept(self) -> None:
        """Store the last bytes of ``origin`` under another name; no other client writes either of them."""
        last = self.written["origin"].writes[-1]
        if last.ended < float("inf"):
            source = f"{_ACCOUNT}/{self.container}/origin"
            self._write("kept", last.record, x_object_motif=motif("duplicate_of", source=source))

    def _write_cold(self, draws: random.Random | None = None) -> None:
        self._write("cold", x_object_motif=motif("tier", policy=EC21))

    def _put(self, name: str, content: bytes, **headers: str) -> Any:
        return self.swift.request("PUT", f"{self.container}/{name}", content, **headers)

    def _post(self, draws: random.Random) -> None:
        name = draws.choice(WITH_MOTIFS)
        answer = self.swift.request("POST", f"{self.container}/{name}", x_object_meta_number=str(draws.random()))
        self._count(f"POST {answer.status}")

    def _contract(self, draws: random.Random) -> None:
        name = draws.choice(WITH_MOTIFS)
        call = WorkerCall(CONTRACT, f"{_ACCOUNT}/{self.container}/{name}", verify=draws.choice(("trust", "expand")))
        try:
            self._daemon.call(call).close()
            self._count(f"contracted {name}")
        except (DaemonAway, RefusedRequest) as error:
            self._count(f"not contracted: {_NAMES.sub('…', str(error))[:90]}")

    def _read_any(self, draws: random.Random) -> None:
        name = draws.choice(WITH_MOTIFS)
        parts = len(self._parts(name))
        if draws.random() < 0.5:
            self.read(name)
            return
        part = draws.randrange(parts)
        begin = SIZE * part + RECORD * draws.randrange(SIZE // RECORD // 2)
        self.read(name, begin, begin + SIZE // 4)

    # Invariants.

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Download | None:
        """Read an object, or a range of it, and record errors; return None when the transfer was cut."""
        headers = {"x_newest": "true"}  # Swift itself may return an old replica
        if stop is not None:
            headers["range"] = f"bytes={start}-{stop - 1}"
        begin = time.monotonic()
        try:
            found = download(self.swift, f"{self.container}/{name}", **headers)
        except OSError:
            self._count("GET lost")
            return None
        end = time.monotonic()
        self._count(f"GET {found.status}{_reason(found)}" if found.whole else "GET cut")
        if found.status in (200, 206):
            self._check(name, found, start, stop, begin, end)
        elif found.status != 503:
            self.wrong.append(f"GET {name}: {found.status}")
        return found

    def _check(self, name: str, found: Download, start: int, stop: int | None, begin: float, end: float) -> None:
        parts = self._parts(name)
        size = SIZE * len(parts) if stop is None else stop - start
        if found.whole and len(found.body) != size:
            self.wrong.append(f"GET {name}: {len(found.body)} bytes, expected {size}")
        for number, source in enumerate(parts):
            # the bytes of this read that come from that source
            low, high = max(0, SIZE * number - start), max(0, SIZE * (number + 1) - start)
            piece = found.body[low:high]
            records = {piece[at : at + RECORD] for at in range(0, len(piece) - RECORD + 1, RECORD)}
            allowed = self.written[source].allowed(begin, end)
            if len(records) > 1 or not records <= allowed:
                self.wrong.append(f"GET {name}: {sorted(records)[:3]} of `{source}`, expected one of {sorted(allowed)}")

    def _parts(self, name: str) -> list[str]:
        """The clients' objects of which an object consists, in order."""
        return [one for source in self.derived.get(name, ()) for one in self._parts(source)] or [name]

    def _wanted(self, name: str) -> bytes:
        return b"".join(self.written[one].writes[-1].record * (SIZE // RECORD) for one in self._parts(name))

    def _concat(self, sources: Sequence[str]) -> str:
        return motif("concat", of=",".join(f"{_ACCOUNT}/{self.container}/{one}" for one in sources))

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1
