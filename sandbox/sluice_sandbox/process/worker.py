"""The process in which uploaded Python runs, inside its jail; standard library only.

Theory of operation.  One thread serves all streams of one tenant from its listening socket, by epoll: a slow reader
costs memory, not a worker.  A stream's bytes go to the uploaded classes as they arrive, output waits in the stream;
while more than ``_BACKLOG`` waits, nothing more is read.  The supervisor watches a shared page of numbers
(``SharedCounters``) to detect code that does not return, and kills the worker.  No process outside trusts the reports
of this file; its checks protect only the tenant itself.

An uploaded file defines a class, by the name that was registered::

    class Shout:
        def __init__(self, params, direction): ...  # a dict; "do" or "undo"
        def feed(self, data): ...                   # bytes to bytes
        def finish(self): ...                       # the rest
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from typing import Final

from sluice_sandbox.process import wire
from sluice_sandbox.process.worker_steps import LoadedCode, SharedCounters, StepChain, StepFault

_BACKLOG: Final = 1024 * 1024
_STREAMS: Final = 200
_FAIR: Final = 8
#: A worker may have 600 descriptors; those that code left open above this number are closed.
_DESCRIPTORS: Final = 500


class WorkerStream:
    """One connection."""

    def __init__(self, connection: socket.socket, library: LoadedCode, steps: StepChain) -> None:
        self.connection = connection
        #: The events for epoll.
        self.events = 0
        self._library = library
        self._steps = steps
        self._head = bytearray()
        self.descriptors: list[int] = []
        self._started = False
        self._ended = False
        self._waiting: list[bytes | memoryview] = []
        self._waits = 0

    def read(self) -> bool:
        """Read the available bytes; return False when there are no more at the moment."""
        try:
            data = self._receive() if not self._started else self.connection.recv(wire.CHUNK)
        except BlockingIOError:
            return False
        try:
            if not self._started:
                data = self._begin(data)
            elif not data:
                rest = self._steps.finish()
                self._put(rest)
                self._end(wire.encode_message(wire.END, {"counts": self._steps.counts}))
                return False
            if data:
                self._put(self._steps.feed(data))
        except StepFault as fault:
            self._end(wire.encode_message(wire.FAULT, fault.message))
            return False
        return True

    def _receive(self) -> bytes:
        data, descriptors, _, _ = socket.recv_fds(self.connection, wire.MAX_HEAD, wire.MAX_STEPS)
        self.descriptors += descriptors
        if not data:
            raise ConnectionResetError("gone before it began")
        return data

    def _begin(self, data: bytes) -> bytes:
        """Start the steps once the head is complete; return the bytes behind it."""
        self._head += data
        if len(self._head) < wire.HEAD.size:
            return b""
        (size,) = wire.HEAD.unpack_from(self._head)
        stop = wire.HEAD.size + size
        if len(self._head) < stop:
            return b""
        steps = json.loads(self._head[wire.HEAD.size : stop])["steps"]
        if len(steps) != len(self.descriptors):
            raise ConnectionAbortedError("descriptors were lost on the way")
        self._started = True
        self._steps.start(self._library, steps, self.descriptors)
        self._drop()
        return bytes(self._head[stop:])

    def _put(self, data: bytes) -> None:
        if data:
            self._waiting += (wire.frame_header(wire.DATA, len(data)), data)
            self._waits += wire.FRAME.size + len(data)

    def _end(self, last: bytes) -> None:
        self._waiting.append(last)
        self._waits += len(last)
        self._ended = True

    def write(self) -> None:
        """Send as many bytes as the peer accepts now."""
        while self._waiting:
            try:
                sent = self.connection.sendmsg(self._waiting[:16])
            except BlockingIOError:
                return
            self._waits -= sent
            while self._waiting and sent >= len(self._waiting[0]):
                sent -= len(self._waiting.pop(0))
            if sent:
                self._waiting[0] = memoryview(self._waiting[0])[sent:]

    def wanted_events(self) -> int:
        """The events to wait for; 0 at the end of the stream."""
        events = select.EPOLLOUT if self._waiting else 0
        if not self._ended and self._waits < _BACKLOG:
            events |= select.EPOLLIN
        return events

    def _drop(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def close(self) -> None:
        """Close the connection and the descriptors of the code."""
        self._drop()
        self.connection.close()


class Worker:
    """Serves streams until it is killed."""

    def __init__(self, listener: socket.socket, page: SharedCounters, limits: dict[str, float]) -> None:
        self._listener = listener
        self._page = page
        self._seconds = (limits["cpu"], limits["cpu_per_mb"] / 1e6)
        self._library = LoadedCode()
        self._streams: dict[int, WorkerStream] = {}
        self._epoll = select.epoll()
        self._accepting = False
        self._own = set(filter(_is_open, range(_DESCRIPTORS + 100)))

    def run(self) -> None:
        """Accept and serve streams without end; the supervisor ends it with a signal."""
        listening = self._listener.fileno()
        while True:
            self._accept_if_room(listening)
            for descriptor, _ in self._epoll.poll():
                if descriptor == listening:
                    self._accept()
                else:
                    self._serve(descriptor, self._streams[descriptor])

    def _accept_if_room(self, listening: int) -> None:
        room = len(self._streams) < _STREAMS
        if room and not self._accepting:
            self._epoll.register(listening, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        elif self._accepting and not room:
            self._epoll.unregister(listening)
        self._accepting = room

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BACKLOG)
        stream = WorkerStream(connection, self._library, StepChain(self._page, self._seconds))
        self._streams[connection.fileno()] = stream
        self._page.streams(len(self._streams))
        self._serve(connection.fileno(), stream)

    def _serve(self, descriptor: int, stream: WorkerStream) -> None:
        try:
            for _ in range(_FAIR):
                stream.write()
                if not (stream.wanted_events() & select.EPOLLIN and stream.read()):
                    break
            stream.write()
            wanted = stream.wanted_events()
        except OSError:
            # the peer closed the connection
            wanted = 0
        self._wait(descriptor, stream, wanted)

    def _wait(self, descriptor: int, stream: WorkerStream, wanted: int) -> None:
        before, stream.events = stream.events, wanted
        if not wanted:
            if before:
                self._epoll.unregister(descriptor)
            del self._streams[descriptor]
            self._page.streams(len(self._streams))
            stream.close()
            self._tidy()
        elif not before:
            self._epoll.register(descriptor, wanted)
        elif wanted != before:
            self._epoll.modify(descriptor, wanted)

    def _tidy(self) -> None:
        """Close descriptors that code left open, before none are left for streams."""
        if not _cramped():
            return
        used = self._own | set(self._streams)
        for stream in self._streams.values():
            used.update(stream.descriptors)
        for descriptor in range(_DESCRIPTORS + 100):
            if descriptor not in used and _is_open(descriptor):
                os.close(descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _cramped() -> bool:
    """Whether too few descriptors are left for one more stream and its code."""
    tried: list[int] = []
    try:
        while len(tried) < wire.MAX_STEPS + 2:
            tried.append(os.dup(0))
    except OSError:
        return True
    finally:
        for one in tried:
            os.close(one)
    return tried[-1] >= _DESCRIPTORS


def _listener(control: int) -> socket.socket:
    """Report that this worker runs, and wait for its listening socket; the supervisor may keep it in reserve until
    then.
    """
    with socket.socket(fileno=control) as line:
        line.send(b"+")
        _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
    if not descriptors:
        sys.exit(0)
    listener = socket.socket(fileno=descriptors[0])
    listener.setblocking(False)
    return listener


def main() -> None:
    """Serve; the only argument holds the limits and the numbers of the inherited descriptors."""
    told = json.loads(sys.argv[1])
    page = SharedCounters(told["page"])
    listener = _listener(told["control"])
    # from here on no output of a tenant's code leaves the jail
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    Worker(listener, page, told).run()
