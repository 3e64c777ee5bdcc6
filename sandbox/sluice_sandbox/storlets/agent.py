"""What Storlets' agent is in our containers: its servers, with a main loop of ours.

Runs inside a container, on nothing but the standard library and Storlets' own agent.  The daemon factory
and the Python daemons of Storlets keep their protocol, their handlers and their file objects; replaced are
the things around, each for a reason:

* Waiting: poll and signals instead of half-second rounds, no fixed sleeps, no syslog.
* A Python daemon is forked from the factory, which has everything loaded, instead of started anew.
* Ends: ``S`` on the status pipe (Storlets' log descriptor) says that a run began.  When it is over a zero
  byte and JSON follow: ``ok``, ``why``, and how many bytes were ``taken`` and ``given`` (None when the filter
  used its descriptors past us).  No such trailer means: killed.  The filter's own log stands between.
* A run is a process, session and memory limit of its own.  What it leaves behind is killed, also what tried to
  escape by a double fork, since its daemon is the reaper of orphans.
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
    """Storlets' server with our main loop; ``idle`` is in seconds."""

    def __init__(self, *args: Any, idle: float = 300.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle = idle

    def main_loop(self, ready: int | None = None) -> int:
        """Serve until idle or told to end; a byte on ``ready`` says that the socket is there."""
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
        """Answer one message; False when it was the last one."""
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
        """Look after child processes; called after every event."""

    def has_work(self) -> bool:
        """Whether there is a reason to stay."""
        return False

    def retries_soon(self) -> bool:
        """Whether something has to be tried again soon."""
        return False

    def shut_down(self) -> None:
        """The loop is over."""


def become_subreaper() -> None:
    """Orphans among our descendants become our children instead of the container's first process'."""
    _PRCTL(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Ask the kernel to end this process with its parent."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def orphans(known: set[int]) -> list[int]:
    """Children of ours that are none of ``known``: orphans that came to us."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [child for child in map(int, file.read().split()) if child not in known]
    except OSError:
        return []


def kill_orphans(known: set[int]) -> None:
    """Kill what runs left behind; the remains of a fork bomb take several rounds."""
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
    """The process ids of those ``children`` (name → process id) that ended; they are no longer in the dictionary."""
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
    """A logger without output: Storlets' servers want one."""
    logger = logging.getLogger("storlets")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    return logger


def _signals(server: PollingServer) -> int:
    """A descriptor that becomes readable with every signal; those to end make the loop end."""

    def stop(signum: int, frame: FrameType | None) -> None:
        server.running = False

    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)  # only to wake up
    return reader


def exit_now(status: int) -> None:
    """End this process at once, without what an interpreter does at its end."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)
