"""Storlets' agent in Sluice's containers: its servers, with Sluice's main loop.

It runs inside a container, and needs only the standard library and Storlets' own agent.  The daemon factory and the
Python daemons of Storlets keep their protocol, their handlers and their file objects; other parts are replaced, each
for a reason:

* Waiting: poll and signals in place of half-second rounds, no fixed sleeps, no syslog.
* A Python daemon is forked from the factory, which has all modules loaded, not started as a new interpreter.
* Ends: ``S`` on the status pipe (Storlets' log descriptor) says that a run began.  At its end a zero byte and JSON
  follow: ``ok``, ``why``, and the numbers of bytes ``taken`` and ``given`` (None when the filter used its descriptors
  directly).  Without this trailer the run was killed.  The filter's own log stands between.
* A run has its own process, session and memory limit.  Its remaining processes are killed, also those that a double
  fork detached, since its daemon is the reaper of orphans.
* A daemon without work ends after the idle time, a factory without daemons as well, and the container with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import select
import signal
import sys
import time
from types import FrameType
from typing import Any, Final

from storlets.agent.common.server import EXIT_SUCCESS, SBusServer
from storlets.sbus.datagram import build_datagram_from_raw_message

from sluice_sandbox.storlets import wire

START: Final = b"S"
TRAILER: Final = b"\0"
_PRCTL: Final = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 50


class PollingServer(SBusServer):  # type: ignore[misc]
    """Storlets' server with Sluice's main loop; ``idle`` is in seconds."""

    def __init__(self, *args: Any, idle: float = 300.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle = idle

    def main_loop(self, ready: int | None = None) -> int:
        """Serve until idle or stopped; a byte on ``ready`` says that the socket exists."""
        become_subreaper()
        with wire.listen(self.sbus_path) as channel:
            wake_up, poll = _signals(self), select.poll()
            poll.register(channel, select.POLLIN)
            poll.register(wake_up, select.POLLIN)
            if ready is not None:
                os.write(ready, b"+")
                os.close(ready)
            last = time.monotonic()
            while self.running:
                events = poll.poll(50 if self.retries_soon() else 1000 * max(0.05, self.idle / 4))
                if any(fd == wake_up for fd, _ in events):
                    os.read(wake_up, 512)
                self.after_event()
                if any(fd == channel.fileno() for fd, _ in events):
                    last = time.monotonic()
                    if not self._serve(channel):
                        break
                elif self.has_work():
                    last = time.monotonic()
                elif time.monotonic() - last > self.idle:
                    break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.sbus_path)
        self.shut_down()
        return int(EXIT_SUCCESS)

    def _serve(self, channel: Any) -> bool:
        """Answer one message; return False after the last one."""
        try:
            descriptors, metadata, message = wire.receive(channel)
        except ValueError as error:
            self.logger.error("no message: %s", error)
            return True
        try:
            datagram = build_datagram_from_raw_message(descriptors, metadata, message)
        except (ValueError, KeyError, TypeError) as error:
            self.logger.error("no datagram: %s", error)
            for descriptor in descriptors:
                os.close(descriptor)
            return True
        return bool(self.dispatch_command(datagram))

    def after_event(self) -> None:
        """Check child processes; called after every event."""

    def has_work(self) -> bool:
        """Whether the server must keep running."""
        return False

    def retries_soon(self) -> bool:
        """Whether an attempt has to be repeated soon."""
        return False

    def shut_down(self) -> None:
        """Called at the end of the loop."""


def become_subreaper() -> None:
    """Make orphans among the descendants children of this process, not of the container's first process."""
    _PRCTL(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Let the kernel end this process with its parent."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def orphans(known: set[int]) -> list[int]:
    """Return the children that are not among ``known``: orphans that this process adopted."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [child for child in map(int, file.read().split()) if child not in known]
    except OSError:
        return []


def kill_orphans(known: set[int]) -> None:
    """Kill the remaining processes of runs; those of a fork bomb take several rounds."""
    for _ in range(_ROUNDS):
        running = orphans(known)
        if not running:
            return
        for child in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def pop_ended(children: dict[str, int]) -> list[int]:
    """Return the process ids of the ended ``children`` (name → process id), and remove them from the dictionary."""
    ended = {}
    for name, child in children.items():
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                continue
        ended[name] = child
    for name in ended:
        del children[name]
    return list(ended.values())


def close_others(*kept: int) -> None:
    """Close every descriptor but the standard ones and ``kept``."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def trailer(ok: bool, why: str = "", taken: int | None = None, given: int | None = None) -> bytes:
    """The last bytes on a status pipe."""
    return TRAILER + json.dumps({"ok": ok, "why": why, "taken": taken, "given": given}).encode()


def quiet_logger() -> logging.Logger:
    """A logger without output, which Storlets' servers need."""
    logger = logging.getLogger("storlets")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    return logger


def _signals(server: PollingServer) -> int:
    """Return a descriptor that becomes readable with every signal; termination signals end the loop."""

    def stop(signum: int, frame: FrameType | None) -> None:
        server.running = False

    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)  # only to wake up
    return reader


def exit_now(status: int) -> None:
    """End this process at once, without the interpreter's exit handlers."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)
