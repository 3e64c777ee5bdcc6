"""One stream through storlets: descriptors, the bytes in both directions, and the verified end.

::

    host -in-> storlet -link-> storlet -out-> host        each storlet -status-> host

The data of pipes between storlets does not pass through the host.  The host keeps a copy of the reading end of every
pipe that a storlet reads, and never reads from it; so

* a storlet that ends early blocks its writer and does not break it, and its unread bytes can be counted;
* a storlet whose daemon ended at the moment of the request can be requested again, since its input is still there.

A stream has ended when every storlet's daemon has reported it (see ``agent``), no pipe has unread bytes, and the output
is at its end.  Everything else is :class:`SandboxFault`: a trailer with a reason, no trailer (killed), no byte in
either direction for ``patience`` seconds.

``feed`` waits only for space, not for output; input that a storlet does not read while it writes waits here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from itertools import pairwise
from time import monotonic
from typing import Any, Final

from storlets.sbus import command as sbus
from storlets.sbus.datagram import SBusFileDescriptor, build_datagram
from storlets.sbus.file_description import (
    SBUS_FD_INPUT_OBJECT,
    SBUS_FD_LOGGER,
    SBUS_FD_OUTPUT_OBJECT,
    SBUS_FD_OUTPUT_OBJECT_METADATA,
    SBUS_FD_SERVICE_OUT,
)

from sluice_filters.api import FilterError
from sluice_sandbox.limits import Limits, SandboxFault, Session
from sluice_sandbox.storlets import commands, wire
from sluice_sandbox.storlets.container import FACTORY, Container
from sluice_sandbox.storlets.stage import JAVA, Stage, StorletTask, printable, reconcile_counts
from sluice_sandbox.waiting import PIPE_SIZE, pause, pipe, read_now, unread_bytes, wait, write_now

_ATTEMPTS: Final = 3
_HEARD: Final = 4096
_QUEUE_POLL: Final = 0.005
#: Greatest output that one ``feed`` collects before it returns.
_ENOUGH: Final = 4 * 1024 * 1024
#: Greatest output after the input's end, for *undo*, whose output size only the host knows.
_TAIL: Final = 256 * 1024 * 1024


class StorletRun(Session):
    """A stream through ``tasks`` in ``container``; it begins with the first byte or the end."""

    def __init__(
        self, container: Container, tasks: Sequence[StorletTask], limits: Limits, size: int | None, undoes: bool
    ) -> None:
        self._container = container
        self._tasks = tasks
        self._limits = limits
        self._undoes = undoes
        self._cpu = int(limits.seconds(1 << 33 if size is None else size)) + 1
        self._stages: list[Stage] = []
        self._open: set[int] = set()
        self._in = self._out = -1
        self._pending = memoryview(b"")
        self._buffer = memoryview(bytearray(PIPE_SIZE))
        self._taken = self._given = 0
        self._over = False

    def feed(self, data: bytes) -> bytes:
        with self._or_abandon():
            self._begin()
            self._pending = memoryview(bytes(self._pending) + data) if self._pending else memoryview(data)
            self._taken += len(data)
            output: list[bytes] = []
            room = _ENOUGH
            while self._pending and room > 0:
                room -= self._turn(output)
            if not output:
                self._read(output)
            return self._passed_on(output)

    def finish(self) -> bytes:
        with self._or_abandon():
            self._begin()
            output: list[bytes] = []
            room = _TAIL if self._undoes else self._limits.output(self._taken) - self._given + 1
            while self._pending or self._in >= 0 or self._out >= 0 or any(one.end is None for one in self._stages):
                if not self._pending and self._in >= 0:
                    self._in = self._close(self._in)
                room -= self._turn(output)
                if room < 0:
                    raise SandboxFault(f"{self._names()} made too much out of {self._taken} bytes")
            for stage in self._stages:
                left = unread_bytes(stage.reader)
                if left:
                    raise SandboxFault(f"filter `{stage.task.keyword}` ended before its input, {left} bytes were left")
            self._over = True
            self._let_go()
            return self._passed_on(output)

    def counts(self) -> list[tuple[int, int]]:
        """See :class:`Session`; bytes that a storlet moved uncounted are taken from its neighbour's count."""
        ends = [one.end or {} for one in self._stages]
        between = [reconcile_counts(left.get("given"), right.get("taken")) for left, right in pairwise(ends)]
        first, last = ends[0].get("taken"), ends[-1].get("given")
        taken = [self._taken if first is None else first, *(right for _, right in between)]
        given = [*(left for left, _ in between), self._given if last is None else last]
        return list(zip(taken, given, strict=True))

    def __del__(self) -> None:
        """End the processes of a run that was dropped before it was finished."""
        self._abandon()

    def _begin(self) -> None:
        if self._over:
            raise SandboxFault(f"{self._names()} is over")
        if self._stages:
            return
        reader, self._in = self._pipe()
        os.set_blocking(self._in, False)
        for task in self._tasks:
            output_reader, output = self._pipe()
            self._stages.append(Stage(task, reader, output))
            reader = output_reader
        self._out = reader
        os.set_blocking(self._out, False)
        for stage in self._stages:
            self._launch(stage)

    def _launch(self, stage: Stage) -> None:
        """Send the stage to its daemon; a cold start includes the container."""
        stage.attempts += 1
        if stage.attempts > _ATTEMPTS:
            raise SandboxFault(f"filter `{stage.task.keyword}` cannot be started: its daemon keeps ending")
        stage.status, writer = self._pipe()
        os.set_blocking(stage.status, False)
        try:
            self._send(stage, writer)
        finally:
            self._close(writer)

    def _send(self, stage: Stage, status: int) -> None:
        task = stage.task
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            limits = {"cpu": str(self._cpu), "memory": str(self._limits.memory * 3 // 4)}
            descriptors = [
                SBusFileDescriptor(SBUS_FD_SERVICE_OUT, nowhere),
                SBusFileDescriptor(SBUS_FD_INPUT_OBJECT, stage.reader, storlets_metadata=limits),
                SBusFileDescriptor(SBUS_FD_OUTPUT_OBJECT, stage.output),
                SBusFileDescriptor(SBUS_FD_OUTPUT_OBJECT_METADATA, nowhere),
                SBusFileDescriptor(SBUS_FD_LOGGER, status),
            ]
            datagram = build_datagram(sbus.SBUS_CMD_EXECUTE, descriptors, dict(task.params), stage.id)
            self._deliver(task, datagram)
        finally:
            os.close(nowhere)

    def _deliver(self, task: StorletTask, datagram: Any) -> None:
        """Send a datagram to the task's daemon, which may have to be started, or replaced when it accepts nothing."""
        path, patience = self._container.socket_of(task.name), monotonic() + self._limits.patience
        attempts = 0
        while attempts < _ATTEMPTS:
            try:
                commands.send_datagram(path, datagram)
                return
            except (FileNotFoundError, ConnectionRefusedError):
                attempts += 1
                self._container.ensure(task)
            except BlockingIOError:  # many requests at once, or it hangs
                pause(_QUEUE_POLL)
                if monotonic() > patience:
                    attempts += 1
                    self._container.replace(lambda: self._container.ping(task.name))
        raise SandboxFault(f"filter `{task.keyword}` cannot be started")

    def _turn(self, output: list[bytes]) -> int:
        """Move the available bytes, else wait for some; return the number of output bytes."""
        wrote = write_now(self._in, self._pending) if self._pending else 0
        if wrote:
            self._pending = self._pending[wrote:]
        got = self._read(output)
        if wrote or got:
            return got
        readers = [one.status for one in self._stages if one.status >= 0]
        if self._out >= 0:
            readers.append(self._out)
        if not readers and not self._pending:
            return 0
        if not wait(readers, [self._in] if self._pending else [], self._limits.patience):
            self._stalled()
        for stage in self._stages:
            self._hear(stage)
        return 0

    def _read(self, output: list[bytes]) -> int:
        data = read_now(self._out, self._buffer) if self._out >= 0 else None
        if data is None:
            return 0
        if not data:
            self._out = self._close(self._out)
        else:
            output.append(data)
        return len(data)

    def _hear(self, stage: Stage) -> None:
        """Read the reports of the stage's daemon, if any."""
        while stage.status >= 0:
            data = read_now(stage.status, self._buffer[:_HEARD])
            if data is None:
                break
            if data:
                if stage.read_status(data):
                    stage.output = self._close(stage.output)
                continue
            stage.status = self._close(stage.status)
            if stage.started:
                self._note_end(stage)
            else:
                self._launch(stage)

    def _note_end(self, stage: Stage) -> None:
        end = stage.close()
        if not end.get("ok"):
            if end.get("why") == wire.NO_PROCESSES:
                self._container.replace()
            raise SandboxFault(f"filter `{stage.task.keyword}` failed: {printable(end.get('why'))}")
        if stage is self._stages[0] and (self._pending or self._in >= 0):
            raise SandboxFault(f"filter `{stage.task.keyword}` ended before its input")

    def _stalled(self) -> None:
        """Handle a stream without progress for too long.

        A daemon that hangs is removed with its container; runs that it had not begun are started again.  A Java daemon
        runs storlets in threads, which cannot be ended: all of them end with it.
        """
        hanging = [one.task.name for one in self._stages if not one.started and not self._container.ping(one.task.name)]
        if hanging:
            self._container.replace(lambda: all(map(self._container.ping, hanging)))
            return
        for stage in self._stages:
            if stage.task.language == JAVA and stage.end is None:
                self._tell(FACTORY, sbus.SBUS_CMD_STOP_DAEMON, {"storlet_name": stage.task.name})
        waiting = " and ".join(f"`{one.task.keyword}`" for one in self._stages if one.end is None)
        raise SandboxFault(f"filter {waiting} did nothing for {self._limits.patience:g} s")

    def _passed_on(self, found: list[bytes]) -> bytes:
        data = b"".join(found)
        self._given += len(data)
        return data

    def _names(self) -> str:
        return "filter " + " and ".join(f"`{one.keyword}`" for one in self._tasks)

    @contextlib.contextmanager
    def _or_abandon(self) -> Any:
        try:
            yield
        except OSError as error:
            self._abandon()
            raise FilterError(f"{self._names()} cannot run now: {os.strerror(error.errno or 0).lower()}") from error
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Release all resources and kill running processes, without waiting for them."""
        stages = [] if self._over else self._stages
        self._over = True
        self._let_go()
        for stage in stages:
            if stage.end is None:
                self._tell(stage.task.name, sbus.SBUS_CMD_CANCEL, None, stage.id)

    def _tell(self, name: str, command: str, params: dict[str, str] | None, task: str | None = None) -> None:
        """Send a command whose answer is not read."""
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                commands.send_command(self._container.socket_of(name), command, params, nowhere, task)
            finally:
                os.close(nowhere)

    def _let_go(self) -> None:
        while self._open:
            os.close(self._open.pop())
        self._in = self._out = -1

    def _pipe(self) -> tuple[int, int]:
        ends = pipe()
        self._open.update(ends)
        return ends

    def _close(self, descriptor: int) -> int:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)
        return -1
