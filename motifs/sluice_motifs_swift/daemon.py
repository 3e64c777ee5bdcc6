"""The daemon as a list of services, which start in their order and stop in reverse order, and the base of most."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, Protocol

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green

log = logging.getLogger(__name__)


class Service(Protocol):
    """A part of the daemon that works in green threads of its own."""

    def start(self) -> None:
        """Start; raises ``SluiceError`` when it cannot."""

    def stop(self) -> None:
        """Stop, without waiting for anything that may take long."""


class PeriodicService:
    """A service that repeats :meth:`step` in one green thread, which is killed at the end."""

    #: The effect of a failed step, for the log.
    failure: ClassVar[str]
    #: Seconds before the first step, and after one that failed.
    delay: float = 0.0
    retry: float
    _reason = ""
    _running: green.Pending | None = None

    def start(self) -> None:
        self._running = green.start_green(self._run)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()

    def step(self) -> float | None:
        """Run the step; return the seconds until the next one, None after the last one."""
        raise NotImplementedError

    def _run(self) -> None:
        pause: float | None = self.delay
        while pause is not None:
            green.pause(pause)
            pause = self._try_step()

    def _try_step(self) -> float | None:
        try:
            pause = self.step()
        except SluiceError as error:
            if f"{error}" != self._reason:  # the same reason is logged once until a step succeeds
                log.warning("%s: %s", self.failure, error)
            self._reason = f"{error}"
        except Exception:  # the storage may raise any exception
            log.exception("%s", self.failure)
        else:
            self._reason = ""
            return pause
        return self.retry


class Daemon:
    """:param services: the services of the daemon"""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self._stopped = False
        self._end = green.Notifier().event()

    def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Run until :meth:`stop`.

        :param on_ready: called when all services have started
        :raises SluiceError: when a service does not start
        """
        with ExitStack() as running:
            for service in self._services:
                service.start()
                running.callback(service.stop)
            on_ready()
            self._end.wait()

    def stop(self, *_: Any) -> None:
        """Stop; a signal handler may call it."""
        if not self._stopped:
            self._stopped = True
            self._end.set()
