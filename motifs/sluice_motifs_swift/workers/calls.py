"""What the node's proxy workers ask of the daemon (``sluice_middleware.motifs.daemon_protocol``)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sluice_core.errors import CallerError, Conflict, NotFound, SluiceError
from sluice_middleware.motifs.daemon_protocol import (
    ATTACH,
    CHANGE,
    CONTRACT,
    COPY,
    EXPAND,
    OPEN,
    REPORT,
    WorkerCall,
    WorkerReply,
    send_frame,
)
from sluice_motifs.contraction.contractor import ALREADY, CONTRACTED
from sluice_motifs.contraction.preparation import VERIFICATIONS
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.shim import Shim
from sluice_motifs_swift.objects.retained import RetainedSources
from sluice_motifs_swift.workers.attachments import Attachments

_FOLLOWS: Final = 200
_DONE: Final = 204


class WorkerCalls:
    """Answers one call on its connection."""

    def __init__(
        self,
        runtime: Runtime,
        shim: Shim,
        attachments: Attachments,
        retained: RetainedSources,
        noted: Callable[[str], object] = lambda name: None,
        changed: Callable[[str], object] = lambda name: None,
        told: Callable[[Iterable[str]], object] = lambda names: None,
    ) -> None:
        """
        :param noted: told of objects to which clients are about to attach motifs
        :param changed: told of objects with motifs that clients wrote or deleted
        :param told: told of all objects that clients wrote or deleted
        """
        self._noted = noted
        self._changed = changed
        self._told = told
        self._runtime = runtime
        self._shim = shim
        self._attachments = attachments
        self._retained = retained
        self._kinds = {
            OPEN: self._open,
            EXPAND: self._expand,
            CONTRACT: self._contract,
            ATTACH: self._attach,
            CHANGE: self._change,
            COPY: self._copy,
            REPORT: self._report,
        }

    def serve(self, call: WorkerCall, connection: socket.socket) -> None:
        """Answer ``call``; an error is told, as long as nothing else was.

        :raises OSError: when the worker is gone
        """
        begun = False

        def reply(answer: WorkerReply) -> None:
            nonlocal begun
            begun = True
            send_frame(connection, answer.encode())

        try:
            kind = self._kinds.get(call.kind)
            if kind is None:
                raise CallerError(f"unknown call `{call.kind}`")
            kind(call, connection, reply)
        except SluiceError as error:
            if not begun:
                reply(WorkerReply(error.status, f"{error}"))

    def _open(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        opened = self._runtime.notify_open(call.item, needed=True, sources=call.sources)  # workers ask for no other
        try:
            if opened.expansion is None:
                reply(WorkerReply(_DONE))
                return
            reply(WorkerReply(_FOLLOWS, same=opened.same()))
            for piece in opened.read(call.start, call.stop):
                send_frame(connection, piece)
            send_frame(connection, b"")
        finally:
            self._runtime.notify_close(opened)

    def _expand(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        self._runtime.expand(call.item)
        reply(WorkerReply(_DONE))

    def _contract(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        if call.verify not in VERIFICATIONS:
            raise CallerError(f"`verify` is `{call.verify}`, expected one of {', '.join(VERIFICATIONS)}")
        outcome = self._runtime.contract(call.item, call.verify)
        if outcome not in (CONTRACTED, ALREADY):
            raise Conflict(f"`{call.item}` is not contracted: {outcome}")
        reply(WorkerReply(_DONE, reason=outcome))

    def _attach(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        record = self._attachments.attach(call.item, call.motifs, call.identity, call.fresh)
        self._noted(call.item)
        reply(WorkerReply(_DONE, record=record))

    def _report(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        now = time.monotonic()
        for name, times in call.opens.items():
            for _ in range(times):
                self._runtime.items.note_open(name, now)
        for name in call.changed:
            if self._runtime.items.slot(name) is not None:
                self._changed(name)
        self._told(call.changed)
        reply(WorkerReply(_DONE))

    def _change(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        self._retained.retain(call.item)
        reply(WorkerReply(_DONE))
        _hold(connection)  # workers of version 1 write as long as the connection is there

    def _copy(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        view = self._shim.view(call.item)
        if view is None:
            raise NotFound(f"there is no object `{call.item}`")
        record = self._attachments.copied(view, call.to, call.identity)
        self._attachments.note(replace(view, name=call.to, record=record))
        if view.plain.version != call.item_version:
            raise Conflict(f"`{call.item}` was written meanwhile")
        answer = WorkerReply(_DONE, record=record.encode(), size=view.plain.size, etag=view.plain.digest)
        if not view.contracted:
            self._noted(call.to)
            reply(answer)
            return
        with self._runtime.copying(call.item, call.to) as seen:
            if seen != view:
                raise Conflict(f"`{call.item}` was written meanwhile")
            reply(WorkerReply(**{**answer.to_data(), "contracted": True}))
            _hold(connection)


def _hold(connection: socket.socket) -> None:
    """Until the worker ends the connection."""
    connection.settimeout(None)
    connection.recv(1)
