"""The worker's client of its node's agent for credit: one per process and side, on a Unix SEQPACKET socket.

Theory of operation.  Only the green threads of throttled transfers wait for the agent (:mod:`wait_queue`).  Sending
never blocks: a request that a full socket did not take is sent again later, and so is a report.  One green thread
reads.  While the agent is unreachable, or silent for :data:`SILENCE` seconds after a request, each account is
detached: it fills itself at its last rate, or at the fallback rate of its method if it never had one
(:mod:`token_account`).  The client tries to reconnect each second.  Each connection has a new worker name and counts
from zero, so that totals of two connections are never compared.

A throttled body opens a :class:`~sluice_middleware.bandwidth.wait_queue.Transfer`::

    transfer = client_registry.shared_client(agent_socket).open(flow)
    transfer.acquire(len(piece))
    transfer.close()
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from sluice_core.connections.agent_connection import AgentConnection, worker_name
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    MESSAGE_LIMIT,
    Ask,
    CreditHello,
    CreditRequest,
    Grant,
    PriorityUpdate,
    Renegotiate,
    pack,
    unpack,
)
from sluice_middleware.bandwidth.counters import BATCH, FlowCounters, ObjectTransfer, split_report
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.bandwidth.token_account import TokenAccount
from sluice_middleware.bandwidth.wait_queue import FlowQueue, Transfer
from sluice_middleware.log import Logger
from sluice_middleware.swift import green

#: Seconds without a message after which the agent counts as unreachable.
SILENCE: Final = 2.0
#: Seconds that one piece of a body waits at most: less than Swift's proxy waits for object servers (``node_timeout``,
#: 10), and less than clients and object servers wait for a proxy (60).
PATIENCE: Final[Mapping[str, float]] = {PROXY: 20.0, STORAGE_NODE: 5.0}
#: Seconds that credit is kept after the last transfer of its flow has ended: the client's next one may follow.
LINGER: Final = 0.05
#: Flows that are kept, and devices of them; beyond that, those without a transfer are removed.
_MOST: Final = 20_000
#: Seconds between two equal lines of the log.
_SAY_AGAIN: Final = 60.0
_TRUNCATED: Final = 2 * MESSAGE_LIMIT


class CreditClient(AgentConnection):
    """Queues and counters of one worker; ``tick`` is called by a timer each second and never raises."""

    away_text: ClassVar[str] = "sluice: no agent gives credit at `%s`: %s"
    back_text: ClassVar[str] = "sluice: the agent gives credit at `%s` again"
    lost_text: ClassVar[str] = "sluice: lost the agent's line for credit at `%s`: %s"

    def __init__(
        self,
        path: str,
        side: str,
        server: str = "",
        policies: Mapping[str, str] | None = None,
        logger: Logger | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param path: of the agent's socket for counters
        :param side: ``proxy`` or ``storage_node``
        :param server: ``ip:port`` of the object server, on its side
        """
        super().__init__(path + CREDIT_SUFFIX, logger or logging.getLogger(__name__))
        self.side = side
        #: Number of pieces that passed without credit.
        self.unpaid = 0
        self._hello = CreditHello("", side, os.getpid(), server, policies or {})
        self._clock = clock
        self._queues: dict[Flow, FlowQueue] = {}
        self._counters = FlowCounters(clock)
        self._transfers: set[Transfer] = set()
        #: The last state that the agent sent; may be read in any thread.
        self.state = AgentState()
        self._resting: set[FlowQueue] = set()
        self._sweeping = False
        self._heard = clock()
        self._detached = True
        self._said = -_SAY_AGAIN

    # -- for transfers -------------------------------------------------------------------------

    def open(
        self,
        flow: Flow,
        device: str = "",
        oid: str = "",
        span: str = "",
        governed: bool = True,
        ceiling: float = 0.0,
    ) -> Transfer:
        """Open a transfer of ``flow``; with ``oid``, of an object that is reported by name.

        :param span: the part of the object that was requested, as in ``0-end``
        :param governed: False for a transfer that is counted and never held back
        :param ceiling: the policies' ceiling in bytes per second (0: none), until the flow's node has a share for it
        """
        queue = None
        if governed:
            queue = self._queues.get(flow) or self._new_queue(flow)
            queue.open += 1
            if ceiling != queue.account.ceiling:
                queue.account.set_ceiling(ceiling)
        object_transfer = ObjectTransfer(flow, device, oid, span) if oid else None
        if object_transfer is not None:
            self._counters.add_object(object_transfer)
        counter = self._counters.counter(flow, device)
        counter.update(self._clock(), opened=1)
        if queue is not None and not queue.account.free:
            self.request_credit(queue)
        transfer = Transfer(self, queue, counter, PATIENCE[self.side], object_transfer)
        self._transfers.add(transfer)
        return transfer

    def count(
        self, flow: Flow, size: int, device: str = "", oid: str = "", span: str = "", governed: bool = True
    ) -> bool:
        """Count a body of ``size`` bytes that passes at once, where no objective is in force; False where it must wait.

        The other parameters are those of :meth:`open`.
        """
        if self.state.active:
            return False
        if governed:
            queue = self._queues.get(flow)
            if queue is None or not queue.account.free or queue.account.ceiling:
                return False
        counters = self._counters
        counters.fresh.append((flow, device, size, oid, span))
        if len(counters.fresh) >= BATCH:
            counters.add_up()
        return True

    def policy_name(self, index: int) -> str:
        """The name of a storage policy; empty when it is not known."""
        return self._hello.policies.get(str(index), "")

    def set_server(self, server: str) -> None:
        """Set the address of this process' object server; a change makes a new connection."""
        if server and server != self._hello.server:
            self._hello = replace(self._hello, server=server)
            self.disconnect()

    # -- for queues ----------------------------------------------------------------------------

    def request_credit(self, queue: FlowQueue) -> None:
        """Request credit for the queue's account, unless it has enough."""
        account = queue.account
        if account.free or account.detached:
            return
        size = account.bytes_to_request(queue.bytes_waiting if queue.waiters else 0)
        if size and self._send_request(queue, size):
            account.requested += size

    def is_silent(self, since: float) -> bool:
        """Whether the agent is unreachable, or silent for :data:`SILENCE` seconds after a request at ``since``."""
        if not self._detached:
            self._detached = self._clock() - max(since, self._heard) > SILENCE
        return self._detached

    def detach(self, queue: FlowQueue) -> None:
        """Detach the queue's account, with the fallback rate of its method."""
        queue.detach(self.state.fallback_rates.get(queue.account.flow.method))

    def count_unpaid(self, queue: FlowQueue) -> None:
        """Count a piece that passed without credit; logged once a minute at most."""
        self.unpaid += 1
        now = self._clock()
        if now - self._said >= _SAY_AGAIN:
            self._said = now
            account = queue.account
            self._logger.warning(
                "sluice: %s of `%s` waited %g s for credit and went on without; %d pieces since the start",
                account.flow.method,
                account.flow.path,
                PATIENCE[self.side],
                self.unpaid,
            )

    def transfer_closed(self, transfer: Transfer) -> None:
        """Count the transfer as closed; surplus credit of its flow is returned soon."""
        self._transfers.discard(transfer)
        transfer.counter.update(self._clock(), opened=-1)
        if transfer.object_transfer is not None:
            self._counters.remove_object(transfer.object_transfer)
        queue = transfer.queue
        if queue is not None:
            queue.open -= 1
            if not queue.open:
                self.queue_is_idle(queue)

    def queue_is_idle(self, queue: FlowQueue) -> None:
        """Return the account's credit after :data:`LINGER` seconds, unless another transfer opens."""
        if queue.account.credit > 0 and not queue.account.free:
            self._resting.add(queue)
            if not self._sweeping:
                self._sweeping = True
                green.call_later(LINGER, self._sweep)

    # -- each second ---------------------------------------------------------------------------

    def tick(self) -> None:
        """Connect unless connected, report what moved, return credit of idle accounts."""
        if self._socket is None and not self._say_hello():
            return
        self._update_counters()
        changed = self._counters.changed()
        for raw in split_report(time.time(), changed.rows, changed.objects):
            if not self.send(raw):
                break
        else:
            self._counters.delivered(changed.counters)
        for queue in self._queues.values():
            if queue.open and not queue.waiters:
                self._give_back(queue, queue.account.release_if_idle())
        self._forget()

    def disconnect(self) -> None:
        """Disconnect until the next tick; all accounts become detached."""
        connection, self._socket = self._socket, None
        if connection is None:
            return
        try:
            connection.shutdown(socket.SHUT_RDWR)  # the thread that reads from it closes it
        except OSError as error:
            self._logger.debug("sluice: line for credit: %s", error)
        self._detach_all()

    # -- how -----------------------------------------------------------------------------------

    def _new_queue(self, flow: Flow) -> FlowQueue:
        made = self._queues[flow] = FlowQueue(TokenAccount(flow, self._clock), self, self._clock)
        if self._socket is None:
            self.detach(made)
        return made

    def _update_counters(self) -> None:
        for transfer in self._transfers:
            transfer.update_counters()

    def _say_hello(self) -> bool:
        self._hello = replace(self._hello, worker=worker_name())
        connection = self.connect(pack(self._hello))
        if connection is None:
            return False
        self._heard = self._clock()
        self._detached = False
        self._update_counters()
        self._counters.reset()
        for queue in self._queues.values():
            queue.account.reattach(connected_anew=True)
            if queue.open:
                queue.serve()
        green.on_readable(connection, lambda: self._read(connection))
        return True

    def _read(self, connection: socket.socket) -> bool:
        """Handle all messages that came; False when the connection has ended."""
        while connection is self._socket:
            try:
                raw = connection.recv(_TRUNCATED)
            except BlockingIOError:
                return True
            except OSError as error:
                self._logger.warning(self.lost_text, self._path, error)
                break
            if not raw:
                break
            self._handle(raw)
        if connection is self._socket:
            self._away = True
            self.disconnect()
        connection.close()
        return False

    def _handle(self, raw: bytes) -> None:
        self._heard = self._clock()
        if self._detached:
            self._detached = False
            for queue in self._queues.values():
                queue.account.reattach()
        try:
            message = unpack(raw)
        except DecodeError as error:
            self._logger.error("sluice: invalid message from the agent: %s", error)
            return
        if isinstance(message, Grant):
            self._grant(message)
        elif isinstance(message, PriorityUpdate):
            levels = {one.flow: one.level for one in message.rows}
            self.state = AgentState(levels, message.active, message.spares or {}, message.alone)
        elif isinstance(message, Renegotiate):
            for queue in self._queues.values():
                if queue.account.free:
                    queue.account.require_credit()
                    if queue.open:
                        self.request_credit(queue)

    def _grant(self, message: Grant) -> None:
        for one in message.rows:
            queue = self._queues.get(one.flow) or self._new_queue(one.flow)
            queue.account.grant(one.size, one.rate)
            if queue.waiters:
                queue.serve()
            elif not queue.open:
                self.queue_is_idle(queue)

    def _sweep(self) -> None:
        self._sweeping = False
        resting, self._resting = self._resting, set()
        for queue in resting:
            if not queue.open:
                self._give_back(queue, queue.account.release_surplus())

    def _give_back(self, queue: FlowQueue, size: int) -> None:
        if size and not self._send_request(queue, -size):
            queue.account.refund(size)

    def _detach_all(self) -> None:
        self._detached = True
        for queue in self._queues.values():
            self.detach(queue)
            if queue.waiters:
                queue.serve()

    def _forget(self) -> None:
        """Remove flows without a transfer beyond :data:`_MOST`; later transfers add them again."""
        if len(self._queues) > _MOST:
            self._queues = {
                flow: queue for flow, queue in self._queues.items() if queue.open or queue.account.requested
            }
        if len(self._counters) > _MOST:
            self.disconnect()  # totals start from 0 with the next hello

    def _send_request(self, queue: FlowQueue, size: int) -> bool:
        """Request ``size`` bytes, or return them when negative; return whether the request reaches the agent."""
        account, method, policy, container = queue.account.flow
        row = CreditRequest(account, container, method, policy, size, len(queue.waiters), queue.account.ceiling)
        return self.send(pack(Ask((row,))))
