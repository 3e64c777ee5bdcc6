"""Requests at a steady rate, from a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Self

from sluice_aio.base.swift_http import SwiftHttp, SwiftResponse


class Steadily:
    """Makes requests at a steady rate until stopped; a context manager.

    :param rate: calls of each of ``asks`` per second
    :param statuses: other statuses fail the test
    """

    def __init__(
        self,
        client: SwiftHttp,
        rate: float,
        *asks: Callable[[], SwiftResponse],
        statuses: Sequence[int] = (200, 201),
    ) -> None:
        self._client = client
        self._statuses = statuses
        self._pause = 1 / rate
        self._asks = asks
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failures: list[SwiftResponse] = []

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            for ask in self._asks:
                answer = ask()
                if answer.status not in self._statuses:
                    self.failures.append(answer)
        self._client.close()  # this thread's connection

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert not self.failures
