"""The live workload: uploads at a given rate, and the result of each."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.demo.corpus import Sample
from sluice_core.errors import PeerError


@dataclass(frozen=True, slots=True)
class Upload:
    """One PUT: times of its begin and answer (one clock), and its status (0 without an answer)."""

    sample: Sample
    begin: float
    end: float
    status: int


class Uploader:
    """Sends samples into one container at a rate that may change at any time.

    A thread keeps the time and gives each upload to one of several others, so that a slow answer
    does not slow the rest down.
    """

    def __init__(self, swift: SwiftHttp, container: str, samples: Iterable[Sample], threads: int = 6) -> None:
        self._swift = swift
        self._container = container
        self._samples = iter(samples)
        self._due: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._interval = 1.0
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        self._clock = threading.Thread(target=self._tick, daemon=True)
        #: Finished uploads; only ever appended to.
        self.done: list[Upload] = []
        #: True after the last sample was uploaded.
        self.exhausted = False

    def start(self, rate: float) -> None:
        """Begin, at ``rate`` uploads a second."""
        self._interval = 1.0 / rate
        for thread in (*self._threads, self._clock):
            thread.start()

    def set_rate(self, rate: float) -> None:
        """Change the rate to ``rate`` uploads a second."""
        with self._changed:
            self._interval = 1.0 / rate
            self._changed.notify()

    def stop(self) -> None:
        """Stop uploading; return when the last upload was answered, or at once if none was begun."""
        if self._clock.ident is None:
            return
        with self._changed:
            self._stopped.set()
            self._changed.notify()
        self._clock.join()
        for _ in self._threads:
            self._due.put(None)
        for thread in self._threads:
            thread.join()

    def logical_bytes(self) -> int:
        """Bytes of everything that was stored, once."""
        return sum(len(upload.sample.body) for upload in list(self.done) if upload.status == 201)

    def _tick(self) -> None:
        last = time.monotonic()
        with self._changed:
            while not self._stopped.is_set():
                wait = last + self._interval - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                last = max(last + self._interval, time.monotonic() - self._interval)
                sample = next(self._samples, None)
                if sample is None:
                    self.exhausted = True
                    return
                self._due.put(sample)

    def _work(self) -> None:
        while (sample := self._due.get()) is not None:
            begin = time.monotonic()
            try:
                answer = self._swift.request("PUT", f"{self._container}/{sample.name}", sample.body)
                status = answer.status
            except PeerError:
                status = 0
            self.done.append(Upload(sample, begin, time.monotonic(), status))
        self._swift.close()
