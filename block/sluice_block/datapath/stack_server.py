"""The stack of a volume: one nbdkit with the volume's filters over its source, started, replaced and found again.

Each nbdkit has a socket of its own, ``stack-<number>.sock``.  A replacement is started beside the serving one, the
front is switched to it (:mod:`front`), and the old one is ended.  After an unexpected end nbdkit is started on the same
socket, where the front finds it.  A konnector that ends in the middle of a replacement leaves two records;
:meth:`StackServer.recover` keeps the one that the front uses.

nbdkit is ended by SIGKILL: after SIGTERM it answers with errors until its connections are closed.  It moves into the
background by itself: in the foreground the kernel ends it together with the thread that started it (version 1.32 always
sets PR_SET_PDEATHSIG).

An nbdkit that serves a block device by itself (``native/fuse``) has no front.  Its replacement waits, with its source
open, until the serving one has ended, which after SIGTERM first finishes its requests; the kernel holds new requests
meanwhile.  A konnector that ends in between leaves two records, too: as long as the old one runs it keeps serving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from sluice_block.datapath import processes
from sluice_block.datapath.processes import ProcessRecord, read_record, write_record
from sluice_core.errors import PeerError
from sluice_core.messages.base import Message

PROGRAM: Final = "nbdkit"
#: Requests that nbdkit processes at a time; the front sends 16 at most.
_THREADS: Final = 16
_CURRENT: Final = ""
_NEXT: Final = ".next"
#: Seconds within which an nbdkit that serves a device must have opened its source.
_OPEN: Final = 20.0
#: Seconds for the present requests when an nbdkit that serves a device is replaced; then they are repeated.
_DRAIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class StackRecord(Message):
    """A started nbdkit: its number, which is in the name of its socket, and its process."""

    number: int
    process: ProcessRecord

    nested: ClassVar[dict[str, type[Message]]] = {"process": ProcessRecord}


@dataclass(frozen=True, slots=True)
class StackServer:
    """The nbdkit of one volume, whose sockets and records are in ``folder``, named after its ``role``.

    :param device: whether it serves a block device by itself
    """

    folder: Path
    role: str = "stack"
    device: bool = False

    def start(self, arguments: Sequence[str], descriptors: Sequence[int] = ()) -> None:
        """Start it, on the socket of an unexpectedly ended one if there is one; it listens when this returns.

        :param arguments: filters, plugin and their parameters
        :param descriptors: files that the arguments name by number
        :raises PeerError: with its output, when it does not start
        """
        before = self._read(_CURRENT)
        record = self._launch(before.number if before is not None else 0, arguments, descriptors)
        write_record(self._path(_CURRENT), record)

    def socket(self) -> Path:
        """The socket of the present or last nbdkit."""
        record = self._read(_CURRENT)
        return self._socket(record.number if record is not None else 0)

    def replace(self, arguments: Sequence[str], swap: Callable[[Path], None], descriptors: Sequence[int] = ()) -> None:
        """Replace the running server by another one.

        :param swap: switches the front to the one at a socket, if there is a front
        :raises PeerError: when the new one does not start, or the front refuses it; the old one keeps serving
        """
        before = self._read(_CURRENT)
        record = self._launch(before.number + 1 if before is not None else 0, arguments, descriptors)
        write_record(self._path(_NEXT), record)
        try:
            swap(self._socket(record.number))
        except BaseException:
            self._drop(_NEXT)
            raise
        self._keep_next()

    def recover(self, used: Path | None = None) -> None:
        """Finish or undo a replacement that a konnector left in its middle.

        :param used: the socket of the stack that the front uses, if there is a front
        """
        record = self._read(_NEXT)
        if record is None:
            return
        if self._socket(record.number) == used or (used is None and self.process() is None):
            self._keep_next()
        else:
            self._drop(_NEXT)

    def process(self) -> ProcessRecord | None:
        """The serving nbdkit; None when none serves."""
        record = self._read(_CURRENT)
        return record.process if record is not None and record.process.is_alive() else None

    def stop(self) -> None:
        """End it; the next start uses its socket.

        :raises PeerError: when it does not end
        """
        record = self._read(_CURRENT)
        if record is not None:
            record.process.end(patience=0)

    def end(self) -> None:
        """End it, and the rest of a replacement.

        :raises PeerError: when it does not end
        """
        self._drop(_NEXT)
        self._drop(_CURRENT)

    def _keep_next(self) -> None:
        old = self._read(_CURRENT)
        if old is not None and self.device:
            old.process.end(patience=_DRAIN)
        self._path(_NEXT).replace(self._path(_CURRENT))
        if old is not None:
            old.process.end(patience=0)
            self._socket(old.number).unlink(missing_ok=True)

    def _drop(self, name: str) -> None:
        record = self._read(name)
        if record is not None:
            record.process.end(patience=0)
            self._socket(record.number).unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)

    def _launch(self, number: int, arguments: Sequence[str], descriptors: Sequence[int]) -> StackRecord:
        listening, pidfile = self._socket(number), self.folder / f"{self.role}-{number}.pid"
        ready, log = self.folder / f"{self.role}-{number}.open", self.folder / f"{self.role}.log"
        for file in (listening, ready):
            file.unlink(missing_ok=True)
        options = ["--threads", str(_THREADS), "--unix", str(listening), "--pidfile", str(pidfile)]
        given = [*arguments, f"fuse-ready={ready}"] if self.device else arguments
        process = processes.start_daemon([PROGRAM, *options, *given], log, pidfile, descriptors)
        pidfile.unlink()
        if self.device:
            _wait_until_open(process, ready, log)
        return StackRecord(number, process)

    def _socket(self, number: int) -> Path:
        return self.folder / f"{self.role}-{number}.sock"

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.role}{name}.process"

    def _read(self, name: str) -> StackRecord | None:
        return read_record(self._path(name), StackRecord)


def _wait_until_open(process: ProcessRecord, ready: Path, log: Path) -> None:
    """Wait until it has opened its source, which it does in the background.

    :raises PeerError: with its output, when it fails; it has ended then
    """
    processes.wait_until(lambda: ready.exists() or not process.is_alive(), _OPEN)
    if not ready.exists():
        process.end(patience=0)
        raise PeerError(f"`{PROGRAM}` does not serve: {processes.last_lines(log) or f'no word in {_OPEN:g} s'}")
    ready.unlink()
