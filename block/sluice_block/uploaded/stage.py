"""The uploaded filter of one volume, between its stack and its source; it is the stack's source.

Theory of operation.  Four programs in a row:

    stack (nbdkit) → relay (qemu-storage-daemon) → sandbox (nbdkit with the filter) → base (nbdkit) → source

The relay waits while the sandbox does not run, and repeats unanswered requests.  The sandbox is connected to the base,
so that the code receives neither path nor key of the source.  On either side the filter ``pending`` records how long
the oldest request waits: a request that waits above while none waits below waits for the filter.

A *fault* is an unexpected end of the sandbox: a crash, a request that takes longer than ``seconds``, more memory than
``memory``.  The sandbox is started again, with a base of its own: unfinished requests of the old one must not reach the
source after those that the new one repeats.  A second fault within a while is final: :class:`FilterFault`, and its
revision is refused on this node (:class:`.Refusals`).  While a volume is attached its filter stays at one revision.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final, NoReturn
from urllib.parse import quote

from sluice_block.datapath.processes import ProcessRecord, read_record, write_record
from sluice_block.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_block.datapath.source import Source
from sluice_block.datapath.stack_server import StackServer
from sluice_block.stack.build import library
from sluice_block.stack.page import Page
from sluice_block.uploaded import sandbox
from sluice_block.uploaded.catalogue import UploadedFilters
from sluice_core.errors import PeerError
from sluice_core.messages.base import Message
from sluice_volumes.messages import StackStep

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """
    :param page: file of the page, made at its first use
    :param built: folder of Sluice's filters for nbdkit
    """

    page: Path
    built: Path

    def before(self, plugin: Sequence[str]) -> list[str]:
        """Return nbdkit's arguments for the filter and then ``plugin``; no request waits there yet."""
        page = Page.open(self.page) if self.page.exists() else Page.create(self.page)
        page.reset_under_way()
        page.close()
        return [f"--filter={library(self.built, 'pending')}", *plugin, f"pending-page={self.page}"]

    def oldest(self) -> float:
        """Return for how many seconds the oldest request waits; 0 without one."""
        page = Page.open(self.page)
        try:
            return page.oldest_pending()
        finally:
            page.close()


@dataclass(frozen=True, slots=True)
class StageRecord(Message):
    """A started sandbox, and the revision in it.

    ``outer`` is bubblewrap's pid.  ``wanted`` is true while it shall run, so that its end is a fault; ``why`` is the
    watchdog's reason.  ``fault`` is the time of the last fault, unix seconds, 0 for none.
    """

    process: ProcessRecord
    outer: int
    keyword: str
    revision: int
    sha256: str
    arguments: tuple[str, ...] = ()
    wanted: bool = True
    why: str = ""
    fault: float = 0.0

    nested: ClassVar[Mapping[str, type[Message]]] = {"process": ProcessRecord}

    def failure(self, why: str) -> str:
        """Return the message about a fault."""
        return f"revision {self.revision} of filter `{self.keyword}` failed: {why}"


_RELAY: Final = "relay"
_BASE: Final = "base"
#: Seconds after a fault, in addition to those of a request, within which another one is final.
_PROBATION: Final = 60.0
#: Seconds that a request may wait at the source before the filter's time-out is suspended.
_SOURCE: Final = 1.0


class FilterFault(PeerError):
    """An uploaded filter failed again; the message names its revision and its fault."""


@dataclass(eq=False)
class UploadedStage:
    """
    :param folder: of the volume: sockets, records, pages
    :param built: folder of Sluice's filters for nbdkit
    :param volume: its id, for the log; its last bits choose the user
    """

    step: StackStep
    source: Source
    filters: UploadedFilters
    folder: Path
    built: Path
    volume: str
    #: When a request last waited at the source, of the monotonic clock: that time does not count for the filter.
    _source_waited: float = field(default_factory=time.monotonic)

    def start(self) -> list[str]:
        """Start the processes that do not run; return the plugin for the stack, and its parameters.

        :raises FilterFault: when the filter failed again
        :raises SluiceError: when it, or its source, cannot be used here
        """
        self._start_filter()
        if self._relay.process() is None:
            client = nbd_client(_RELAY, {"type": "unix", "path": str(self._listening)})
            self._relay.start([client], _RELAY)
        uri = f"nbd+unix:///{_RELAY}?socket={quote(str(self._relay.socket))}"
        return self._above.before(["nbd", f"uri={uri}"])

    def start_stored(self) -> list[str]:
        """Return the source's plugin and its parameters: the stored data, without the filter.

        :raises SluiceError: when the source cannot be used
        """
        return self.source.start()

    def watch(self) -> None:
        """End the sandbox when a request takes too long or it uses too much memory; restart ended processes.

        The stack keeps running, and its requests wait at the relay: a new stack would repeat them in addition to those.

        :raises FilterFault: when the filter failed again
        :raises SluiceError: when a process does not end or start
        """
        record = self._read()
        why = self._overrun(record.process.pid) if record is not None and record.process.is_alive() else ""
        if record is not None and why:
            self._write(replace(record, why=why))
            record.process.end(patience=0)
        if self.process() is None or self._base.process() is None or self.source.has_ended():
            self._start_filter()

    def process(self) -> ProcessRecord | None:
        """The sandbox; None when it does not run."""
        record = self._read()
        return record.process if record is not None and record.process.is_alive() else None

    def has_ended(self) -> bool:
        """Whether the process to which the stack is connected does not run."""
        return self._relay.process() is None

    def end(self) -> None:
        """End all processes, and the source; the next start in this folder uses the same revision.

        :raises PeerError: when a process does not end
        """
        self._relay.end(patience=0)  # answered requests have passed it
        self._stopped(self._read())
        self._base.end()
        self.source.end()

    # -- the sandbox ---------------------------------------------------------------------------

    def _start_filter(self) -> None:
        record = self._judged()
        if self.source.has_ended() or self._base.process() is None:
            record = self._stopped(record)
            self._base.stop()
            self._base.start(self._below.before(self.source.start()))
        if record is None or not record.process.is_alive():
            self._launch(record)

    def _launch(self, before: StageRecord | None) -> None:
        """Start the sandbox: with its former revision, else with the newest."""
        if before is None:
            found = self.filters.find(self.step)
            none = ProcessRecord(0, 0, "")
            before = StageRecord(none, 0, found.keyword, found.revision, found.sha256, found.arguments)
        bounds = self.filters.bounds
        bounds = replace(bounds, uid=bounds.uid + int(self.volume[-4:], 16))
        code = self.filters.code(before.sha256)
        sockets = self._listening, self._base.socket()
        try:
            made = sandbox.start(code, before.arguments, *sockets, self.built, bounds, self.folder / "filter.log")
        except PeerError as error:
            if before.fault:
                self._give_up(before, str(error))
            raise
        self._write(replace(before, process=made.process, outer=made.outer, wanted=True, why=""))
        self._source_waited = time.monotonic()

    def _judged(self) -> StageRecord | None:
        """Return the record, after a fault was recorded.

        :raises FilterFault: when it was the second one within a while
        """
        record = self._read()
        if record is None or not record.wanted or record.process.is_alive():
            return record
        told = sandbox.how_it_ended(record.outer)
        if self._base.process() is None and not record.why:
            return record  # it lost its connection
        why = record.why or told
        now = time.time()
        if now - record.fault < _PROBATION + self.filters.bounds.seconds:
            self._give_up(record, why)
        log.warning("volume `%s`: %s; it is started again", self.volume, record.failure(why))
        self._base.stop()
        record = replace(record, wanted=False, fault=now)
        self._write(record)
        return record

    def _give_up(self, record: StageRecord, why: str) -> NoReturn:
        """Refuse its revision on this node.

        :raises FilterFault: always
        """
        self.filters.refusals.add(record.keyword, record.revision, record.sha256, why, self.volume)
        failed = record.failure(why)
        raise FilterFault(f"{failed}, after it was started again; it is refused on this node from now on")

    def _stopped(self, record: StageRecord | None) -> StageRecord | None:
        """End the sandbox, which is not a fault; return its record."""
        if record is None:
            return None
        record = replace(record, wanted=False)
        self._write(record)
        record.process.end(patience=0)
        sandbox.how_it_ended(record.outer)
        return record

    def _overrun(self, pid: int) -> str:
        """Return the limit that the filter has exceeded; empty without one."""
        bounds = self.filters.bounds
        used = sandbox.memory_in_use(pid)
        if used > bounds.memory:
            return f"it uses {used} bytes of memory, expected {bounds.memory} at most"
        now = time.monotonic()
        if self._below.oldest() > _SOURCE:
            self._source_waited = now
        waiting = min(self._above.oldest(), now - self._source_waited)
        return f"it has not answered a request for {waiting:.0f} s" if waiting > bounds.seconds else ""

    # -- pages, sockets, records ---------------------------------------------------------------

    @property
    def _above(self) -> PendingRequests:
        return PendingRequests(self.folder / "above.page", self.built)

    @property
    def _below(self) -> PendingRequests:
        return PendingRequests(self.folder / "below.page", self.built)

    @property
    def _base(self) -> StackServer:
        return StackServer(self.folder, _BASE)

    @property
    def _relay(self) -> QemuDaemon:
        return QemuDaemon(self.folder, _RELAY)

    @property
    def _listening(self) -> Path:
        return self.folder / "filter.sock"

    @property
    def _record(self) -> Path:
        return self.folder / "filter.process"

    def _read(self) -> StageRecord | None:
        return read_record(self._record, StageRecord)

    def _write(self, record: StageRecord) -> None:
        write_record(self._record, record)
