"""The calls of the node's proxy workers to the daemon (``sluice_middleware.motifs.daemon_protocol``)."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from sluice_core.errors import CallerError, Conflict, PeerError, SluiceError
from sluice_core.process.logs import log_fields
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
    receive_frame,
    send_frame,
)
from sluice_middleware.swift import green
from sluice_motifs.contraction.contractor import ALREADY, CONTRACTED
from sluice_motifs.contraction.preparation import VERIFICATIONS
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.shim import Shim, find_item
from sluice_motifs_swift.attachments import Attachments
from sluice_motifs_swift.objects.containers import RetainedSources

log = logging.getLogger(__name__)

#: Connections that wait to be accepted.
_BACKLOG: Final = 4096
#: Seconds for a frame to arrive, or to be taken by a slow client.
_PATIENCE: Final = 60.0
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
        on_attach: Callable[[str], object] = lambda name: None,
        on_change: Callable[[str], object] = lambda name: None,
        on_report: Callable[[Iterable[str]], object] = lambda names: None,
    ) -> None:
        """
        :param on_attach: called with the name of an object to which a client is about to attach motifs
        :param on_change: called with the name of an object with motifs that a client wrote or deleted
        :param on_report: called with the names of all objects that clients wrote or deleted
        """
        self._on_attach = on_attach
        self._on_change = on_change
        self._on_report = on_report
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
        """Answer ``call``; an error is sent, unless a reply was sent before.

        :raises OSError: when the worker has disconnected
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
        opened = self._runtime.notify_open(call.item, needed=True, sources=call.sources)  # workers open no others
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
        self._on_attach(call.item)
        reply(WorkerReply(_DONE, record=record))

    def _report(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        now = time.monotonic()
        for name, times in call.opens.items():
            for _ in range(times):
                self._runtime.items.note_open(name, now)
        for name in call.changed:
            if self._runtime.items.slot(name) is not None:
                self._on_change(name)
        self._on_report(call.changed)
        reply(WorkerReply(_DONE))

    def _change(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        self._retained.retain(call.item)
        reply(WorkerReply(_DONE))
        _hold(connection)  # workers of version 1 write while the connection lasts

    def _copy(self, call: WorkerCall, connection: socket.socket, reply: Callable[[WorkerReply], None]) -> None:
        view = find_item(self._shim, call.item, "object")
        record = self._attachments.copied(view, call.to, call.identity)
        self._attachments.note(replace(view, name=call.to, record=record))
        if view.plain.version != call.item_version:
            raise Conflict(f"`{call.item}` was written meanwhile")
        answer = WorkerReply(_DONE, record=record.encode(), size=view.plain.size, etag=view.plain.digest)
        if not view.contracted:
            self._on_attach(call.to)
            reply(answer)
            return
        with self._runtime.copying(call.item, call.to) as seen:
            if seen != view:
                raise Conflict(f"`{call.item}` was written meanwhile")
            reply(WorkerReply(**{**answer.to_data(), "contracted": True}))
            _hold(connection)


def _hold(connection: socket.socket) -> None:
    """Wait until the worker closes the connection."""
    connection.settimeout(None)
    connection.recv(1)


class WorkerServer:
    """A service: the Unix socket of the workers' calls, one connection a call, each in a green thread of its own.

    The socket is for processes of the same user.

    :param path: of the socket; one that a killed daemon left is replaced
    """

    def __init__(self, path: str, calls: WorkerCalls) -> None:
        self._path = Path(path)
        self._calls = calls
        self._socket: socket.socket | None = None
        self._running: green.Pending | None = None

    def start(self) -> None:
        """
        :raises PeerError: when the socket cannot be created, or another daemon listens there
        """
        listening = socket.socket(socket.AF_UNIX)
        try:
            if _listens(self._path):
                raise PeerError(f"another daemon listens on `{self._path}`")
            self._path.unlink(missing_ok=True)
            before = os.umask(0o077)
            try:
                listening.bind(str(self._path))
            finally:
                os.umask(before)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise PeerError(f"cannot listen on `{self._path}`: {error}") from error
        except PeerError:
            listening.close()
            raise
        self._socket = listening
        self._running = green.start_green(self._accept)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
        if self._socket is not None:
            self._socket.close()
            with suppress(OSError):
                self._path.unlink()

    def _accept(self) -> None:
        assert self._socket is not None
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                log.error("no connection is accepted: %s", error)
                green.pause(1.0)
                continue
            green.start_green(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_PATIENCE)
            try:
                raw = receive_frame(connection)
                call = None if raw is None else WorkerCall.decode(raw)
            except OSError as error:
                log.debug("a proxy worker is gone: %s", error)
                return
            except PeerError as error:
                log.warning("a call of a proxy worker is not understood: %s", error)
                return
            if call is not None:
                with log_fields(request=call.request):
                    self._answer(call, connection)

    def _answer(self, call: WorkerCall, connection: socket.socket) -> None:
        try:
            self._calls.serve(call, connection)
        except OSError as error:
            log.debug("a proxy worker is gone: %s", error)
        except Exception:
            log.exception("a call of a proxy worker failed")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
