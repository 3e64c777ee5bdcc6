"""One tenant of the supervisor: its listening socket, its jailed workers, and their shared pages."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import select
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sluice_sandbox.jail.jail import Jail
from sluice_sandbox.jail.root import JailUnavailable
from sluice_sandbox.process.worker_steps import SharedCounters

#: Streams that may wait for a worker; the kernel limits it to `net.core.somaxconn`.
_QUEUE: Final = 4096
#: Seconds for the start of a jail.
_START: Final = 10.0
_MAIN: Final = (
    "import sys; sys.path[:0] = ['/sluice', '/packages']; from sluice_sandbox.process.worker import main; main()"
)
PYTHON: Final = ("/python/bin/python3", "-I", "-S")
_log = logging.getLogger(__name__)


def restrict_socket(path: Path, owner: int | None) -> None:
    """Let only user ``owner`` (None: that of this process) connect to the socket at ``path``."""
    path.chmod(0o600)
    if owner is not None:
        os.chown(path, owner, -1)


@dataclass(eq=False)
class JailedWorker:
    """A running worker; until it has a tenant it may wait in reserve."""

    process: subprocess.Popen[bytes]
    counters: SharedCounters
    descriptor: int
    control: socket.socket
    started: float
    entries: int = 0
    #: Time since which the page is unchanged.
    still: float = field(default_factory=time.monotonic)

    def serve(self, listener: socket.socket) -> None:
        """Serve streams from ``listener`` from now on."""
        socket.send_fds(self.control, [b"+"], [listener.fileno()])
        self.control.close()
        self.started = self.still = time.monotonic()

    def observe(self, now: float) -> tuple[bool, bool]:
        """Return whether the page changed since the last call, and whether streams are open."""
        entries, _, streams = self.counters.read()
        moved = entries != self.entries
        if moved:
            self.entries, self.still = entries, now
        return moved, streams > 0

    def runs_code(self) -> bool:
        """Whether it runs a tenant's code."""
        return self.counters.read()[1]

    def close(self) -> None:
        """After it ended."""
        self.process.wait()
        os.close(self.descriptor)
        self.control.close()
        self.counters.close()


@dataclass(eq=False)
class Tenant:
    """A tenant, whose workers listen at ``path``."""

    name: str
    path: Path
    jail: Jail
    listener: socket.socket | None = None
    #: A running worker in this tenant's jail.
    spare: JailedWorker | None = None
    workers: list[JailedWorker] = field(default_factory=list)
    active: float = field(default_factory=time.monotonic)
    #: One start at a time.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    named: bool = False

    def listen(self, owner: int | None) -> None:
        """Bind the tenant's socket; clients wait there for the first worker."""
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.listener.bind(str(self.path))
        restrict_socket(self.path, owner)
        self.listener.listen(_QUEUE)
        self.named = True

    def unlink_socket(self) -> None:
        """Unlink the socket; waiting clients are still served."""
        if self.named:
            self.path.unlink(missing_ok=True)
        self.named = False

    def socket_is_shut(self) -> bool:
        """Whether connections are refused: code that controls a worker can shut its tenant's socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as line:
            try:
                line.connect(str(self.path))
            except BlockingIOError:
                return False
            except OSError:
                return True
        return False

    def has_waiting_streams(self) -> bool:
        """Whether a stream waits that no worker accepted."""
        if self.listener is None:
            return False
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        return any(events == select.POLLIN for _, events in poll.poll(0))

    async def start_worker(self) -> JailedWorker:
        """Start one more worker, which serves when this returns.

        :raises JailUnavailable: when it does not start, with its output
        """
        begun = time.monotonic()
        spare, self.spare = self.spare, None
        if spare is not None and spare.process.poll() is not None:
            spare.close()
            spare = None
        member = await start_jailed_worker(self.jail) if spare is None else spare
        if self.listener is None:
            member.process.kill()
            member.close()
            raise JailUnavailable(f"tenant `{self.name}` is closed")
        member.serve(self.listener)
        self.workers.append(member)
        took = (time.monotonic() - begun) * 1000
        _log.info("tenant `%s` has worker %d after %.0f ms", self.name, member.process.pid, took)
        return member

    def kill(self) -> None:
        """End all workers now."""
        for member in self.workers:
            member.process.kill()
        if self.spare is not None:
            self.spare.process.kill()
            self.spare.close()
            self.spare = None

    def close(self) -> None:
        """After the last worker ended."""
        self.unlink_socket()
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        if self.jail.group is not None:
            self.jail.group.remove()


async def start_jailed_worker(jail: Jail) -> JailedWorker:
    """Start a worker in ``jail``, without a tenant yet.

    :raises JailUnavailable: when it does not start, with its output
    """
    page = os.memfd_create("page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(page, SharedCounters.SIZE)
    # a page that shrinks kills the processes that read it
    fcntl.fcntl(page, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    heard, errors = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        limits = jail.limits
        told = {"control": theirs.fileno(), "page": page, "cpu": limits.cpu, "cpu_per_mb": limits.cpu_per_mb}
        command = [*PYTHON, "-c", _MAIN, json.dumps(told)]
        process = jail.start(command, [theirs.fileno(), page], errors)
        theirs.close()
        member = JailedWorker(process, SharedCounters(page), os.pidfd_open(process.pid), ours, time.monotonic())
        try:
            async with asyncio.timeout(_START):
                up = await asyncio.get_running_loop().sock_recv(ours, 1)
        except (TimeoutError, ConnectionError):
            up = b""
        if up != b"+":
            process.kill()
            member.close()
            raise JailUnavailable(f"worker does not start: {last_error_line(heard)}")
    finally:
        theirs.close()
        for one in (page, heard, errors):
            os.close(one)
    return member


def last_error_line(heard: int) -> str:
    """Return the last line of the pipe ``heard`` so far, or a text for no output."""
    try:
        text = os.read(heard, 65536).decode(errors="replace").strip()
    except BlockingIOError:
        text = ""
    return text.splitlines()[-1] if text else "it said nothing"
