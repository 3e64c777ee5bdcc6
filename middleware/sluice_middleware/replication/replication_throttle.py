"""Throttles copies between storage nodes: the flow ``REPLICATION`` of no account, through the node's agent.

Theory of operation.  The cap on replication is one for the cluster, so all storage policies are one flow.  The actor
host that divides the cap gives each node a share; the daemons of a node, and their workers, share the credit of that
node.  SSYNC charges bytes before it sends them (:meth:`ThrottledCopy.acquire`).  rsync moves bytes by itself, so they
are reserved before a short run, or recorded while a run moves them; the next run waits until the debt is paid.

Debt is bounded by :data:`MOST_DEBT` seconds of the rate: bytes beyond are only counted, since a cap that was
lowered would otherwise stop replication.  A node that starts to copy waits :data:`SETTLING` seconds for its share.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import REPLICATION_FLOW
from sluice_core.options import read_options
from sluice_middleware.bandwidth import client_registry
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.log import Logger
from sluice_middleware.object_server.diskfile.disk_filters import OPTIONS, PREFIX
from sluice_middleware.swift import green

#: The most debt in seconds of the rate; bytes beyond are only counted, or a cap that was lowered would stop all copies.
MOST_DEBT: Final = 10.0
#: The most credit in seconds of the rate that refunds of reserved bytes may leave.
MOST_SAVED: Final = 0.25
#: Seconds until a node that starts to copy has its share of the cap: two rounds of the host that divides it.
SETTLING: Final = 2.4
#: Seconds after which a node that copied no bytes waits for its share again.
_AT_REST: Final = 3.0
_STEP: Final = 0.2
_LEAST: Final = 64 * 1024


class ThrottledCopy:
    """One copy, a context manager, with credit from the node's agent."""

    def __init__(self, throttle: AgentThrottle, client: CreditClient, device: str) -> None:
        self._throttle = throttle
        self._client = client
        self._device = device
        self._transfer: Transfer = client.open(REPLICATION_FLOW, device)
        self._heard = False
        self._reserved = 0

    def rate(self) -> float | None:
        """Bytes per second that this process may move; None without a cap.  Waits for the agent's first grant."""
        if not self._heard:
            self._heard = True
            if self._transfer.rate is None:
                self._transfer.acquire(1)  # returns when the agent has granted credit, or is silent
        return self._transfer.rate

    def acquire(self, size: int) -> None:
        """Wait until ``size`` bytes may move, and count them."""
        self._transfer.acquire(size)

    def wait_for_debt(self) -> None:
        """Wait until this process as a whole has no debt.

        This may take longer than the patience of one piece, since no other node waits meanwhile.
        """
        queue, end = self._transfer.queue, time.monotonic() + MOST_DEBT
        self._transfer.acquire(1)
        while queue is not None and queue.account.credit < 0 and time.monotonic() < end:
            self._transfer.acquire(1)

    def reserve(self, size: int) -> None:
        """Charge ``size`` bytes before they move; :meth:`__exit__` refunds the bytes that did not move."""
        queue = self._transfer.queue
        if queue is not None and not queue.account.free:
            queue.charge(size)
            self._reserved += size

    def record(self, size: int) -> None:
        """Count ``size`` bytes that have moved, and charge those that were not reserved to later copies."""
        paid = min(size, self._reserved)
        self._reserved -= paid
        self._transfer.moved += paid
        size -= paid
        queue = self._transfer.queue
        if queue is None or queue.account.free:
            self._transfer.acquire(size)
            return
        room = max(0, queue.account.credit + int(MOST_DEBT * (self._transfer.rate or 0.0)))
        self._transfer.charge(min(size, room))
        if size > room:
            self._count(size - room)

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Context in which the copy counts as waiting: it moves more slowly than it could."""
        self._transfer.counter.update(time.monotonic(), waiting=1)
        try:
            yield
        finally:
            self._transfer.counter.update(time.monotonic(), waiting=-1)

    def wait_for_share(self) -> None:
        """Wait until the node has its share of the cap, if this process copied no bytes lately.

        The next bytes may use a part of the credit that is granted meanwhile.
        """
        queue = self._transfer.queue
        if queue is None or self._transfer.rate is None or queue.account.detached or not self._throttle.is_idle():
            return
        saved, end = 0, time.monotonic() + SETTLING
        try:
            with self.held_back():
                while (left := end - time.monotonic()) > 0 and self._transfer.rate is not None:
                    size = max(_LEAST, int(self._transfer.rate * _STEP))
                    queue.charge(size)
                    saved += size
                    green.InterruptibleSleep().wait(min(_STEP, left))
        finally:
            self._refund(saved)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._refund(self._reserved)
        self._throttle.copy_closed()
        self._transfer.close()

    def _refund(self, size: int) -> None:
        """Refund ``size`` reserved bytes that did not move; a part only, if they would allow a burst."""
        queue = self._transfer.queue
        if queue is not None and size:
            most = int(MOST_SAVED * (self._transfer.rate or 0.0)) - queue.account.credit
            queue.account.refund(max(0, min(size, most)))
            queue.serve()

    def _count(self, size: int) -> None:
        counted = self._client.open(REPLICATION_FLOW, self._device, governed=False)
        counted.acquire(size)
        counted.close()


class AgentThrottle:
    """Opens the copies of one daemon, with the agent that its configuration names, if any."""

    def __init__(self, conf: Mapping[str, Any], logger: Logger | None = None) -> None:
        """
        :param conf: of the daemon; only Sluice's options are read
        :raises OptionError: for unknown options and bad values, all at once
        """
        given = {name: str(value) for name, value in conf.items() if name.startswith(PREFIX)}
        self._path = str(read_options(OPTIONS, given, "object-server.conf [DEFAULT]")["sluice_agent_socket"])
        self._logger = logger
        #: A flow without a connection, for copies without a cap.
        self._unlimited = CreditClient("", STORAGE_NODE)
        self._left: float | None = None

    def open(self, device: str) -> ThrottledCopy:
        """Open a copy of data on ``device``; the first one connects to the agent, after the daemon's fork."""
        client = client_registry.shared_client(self._path, logger=self._logger) if self._path else self._unlimited
        return ThrottledCopy(self, client, device)

    def is_idle(self) -> bool:
        """Whether no copy ended lately."""
        return self._left is None or time.monotonic() - self._left > _AT_REST

    def copy_closed(self) -> None:
        """Note that a copy has ended."""
        self._left = time.monotonic()
