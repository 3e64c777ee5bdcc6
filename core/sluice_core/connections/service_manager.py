"""Notifies the service manager (systemd) that this process serves, and that its main loop runs: sd_notify(3).

A unit with ``Type=notify`` has started when :meth:`ServiceManager.ready` was called.  With ``WatchdogSec=`` the manager
restarts a process that sends no sign of life for that long.  Only the main loop calls :meth:`ServiceManager.alive`: a
separate thread would continue while the main loop is blocked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

log = logging.getLogger(__name__)

_SOCKET: Final = "NOTIFY_SOCKET"
_SECONDS: Final = "WATCHDOG_USEC"
_PROCESS: Final = "WATCHDOG_PID"


class ServiceManager:
    """
    :param address: path of the manager's datagram socket, `@name` for an abstract one; empty: there is no manager, and
        nothing is sent
    :param interval: seconds between two signs of life; 0: the manager expects none
    """

    def __init__(self, address: str = "", interval: float = 0.0) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._interval = interval if address else 0.0
        self._is_ready = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] = os.environ) -> ServiceManager:
        """The manager that started this process; its environment variables are removed, so that child processes do not
        notify it.
        """
        address = environment.pop(_SOCKET, "")
        microseconds, process = environment.pop(_SECONDS, ""), environment.pop(_PROCESS, "")
        is_ours = process in ("", str(os.getpid()))
        # half of the time after which the manager acts, as sd_watchdog_enabled(3) recommends
        interval = int(microseconds) / 2e6 if microseconds.isdigit() and is_ours else 0.0
        return cls(address, interval)

    def ready(self) -> None:
        """Notify the manager that this process serves; repeated calls send nothing."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")

    def stopping(self) -> None:
        """Notify the manager that this process stops, which may take a while."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Send a sign of life."""
        if self._interval:
            self._send("WATCHDOG=1")

    def signs_of_life(self) -> Iterator[float]:
        """Send signs of life without end; each is followed by the seconds that the main loop waits before the next."""
        while self._interval:
            self.alive()
            yield self._interval

    def keep_alive(self, pause: Callable[[float], object]) -> None:
        """Send signs of life without end; ``pause`` waits for some seconds, in the way of the main loop's green
        threads.
        """
        for seconds in self.signs_of_life():
            pause(seconds)

    async def keep_loop_alive(self) -> None:
        """Send signs of life in a task of asyncio's loop, until it is cancelled."""
        for seconds in self.signs_of_life():
            await asyncio.sleep(seconds)

    def _send(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.connect(self._address)
                sender.sendall(state.encode())
        except OSError as error:
            log.warning("the service manager did not receive `%s`: %s", state, error)
