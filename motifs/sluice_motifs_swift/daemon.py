"""The daemon as a list of services, which start in their order and stop in the reverse one, and the base of most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from sluice_middleware.swift import green


class Service(Protocol):
    """Something that works in green threads of its own."""

    def start(self) -> None:
        """Begin; raises ``SluiceError`` when it cannot."""

    def stop(self) -> None:
        """End, and wait for nothing that may last."""


class GreenService:
    """A service with one green thread, which is killed at the end."""

    _running: green.Pending | None = None

    def start(self) -> None:
        self._running = green.start_green_thread(self._run)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()

    def _run(self) -> None:
        """What the thread does."""
        raise NotImplementedError


class Daemon:
    """:param services: what runs in it"""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self._stopped = False
        self._end = green.Notifier().event()

    def run(self) -> None:
        """Work until :meth:`stop`.

        :raises SluiceError: when a service does not start
        """
        with ExitStack() as running:
            for service in self._services:
                service.start()
                running.callback(service.stop)
            self._end.wait()

    def stop(self, *_: Any) -> None:
        """End; may be called by a signal."""
        if not self._stopped:
            self._stopped = True
            self._end.set()
