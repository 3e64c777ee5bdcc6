"""The filters of a volume over its source, with the page that controls them: started, replaced, found again, ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sluice_block.datapath.luks_header import LuksHeader, open_passphrase
from sluice_block.datapath.processes import ProcessRecord
from sluice_block.datapath.records import VolumeAttachment, VolumeLimits
from sluice_block.datapath.stack_server import StackServer
from sluice_block.stack.filters import is_protected, nbdkit_arguments
from sluice_block.stack.page import Counters, Page
from sluice_core.describe import Scalar
from sluice_core.errors import CallerError, NotFound
from sluice_volumes.messages import LUKS, StackStep

Steps = Sequence[tuple[str, Mapping[str, Scalar]]]


def pairs(steps: Sequence[StackStep]) -> Steps:
    """Return filters with their parameters, in the form of :mod:`sluice_block.stack.filters`."""
    return [(one.keyword, one.params) for one in steps]


class VolumeSource(Protocol):
    """The storage below a stack: the methods of :class:`sluice_block.datapath.source.Source` that it needs."""

    def start(self) -> list[str]:
        """Start the processes that it needs; return nbdkit's plugin and its parameters."""

    def start_stored(self) -> list[str]:
        """The same for the stored data, without filters."""

    def end(self) -> None:
        """End the processes that it needs."""


@dataclass(eq=False)
class VolumeStack:
    """:param folder: of the volume: sockets, records, the page
    :param built: folder of Sluice's filters for nbdkit
    :param log: file of the log of requests
    :param keeper: socket of the keeper of a block device that the stack serves by itself; None: it serves a front
    """

    folder: Path
    built: Path
    source: VolumeSource
    log: Path
    keeper: Path | None = None
    _server: StackServer = field(init=False)
    _header: LuksHeader = field(init=False)

    def __post_init__(self) -> None:
        self._server = StackServer(self.folder, device=self.keeper is not None)
        self._header = LuksHeader(self.folder / LUKS)

    def prepare(self, wanted: VolumeAttachment) -> None:
        """Call before the first start: check that the stored data can be read with the secret; create a header if
        permitted.

        :raises CallerError: when its filters cannot be used, or its secret is missing or not needed
        :raises SluiceError: as of :meth:`LuksHeader.prepare`
        """
        steps = pairs(wanted.steps())
        if is_protected(steps) != bool(wanted.secret):
            raise CallerError(
                "`secret` is missing, which a filter of the stack needs"
                if not wanted.secret
                else "no filter of the stack needs a `secret`"
            )
        place = next((number for number, (keyword, _) in enumerate(steps) if keyword == LUKS), None)
        if place is not None and self._server.process() is None:
            below = nbdkit_arguments(steps[place + 1 :], self.source.start(), self.built)
            self._header.prepare(self.source.start_stored(), below, wanted.secret, wanted.fresh)

    def start(self, wanted: VolumeAttachment) -> None:
        """Start it if it does not run; the requested limits and log are in force when this returns.

        :raises CallerError: when its connection or its filters cannot be used
        :raises PeerError: when a program does not start
        """
        if not self._page_file.exists():
            Page.create(self._page_file).close()
        with self._page() as page:
            page.set_limits(wanted.limits_in_force().page_limits())
            page.set_log(wanted.log)
            if self._server.process() is not None:
                return
            page.reset_under_way()  # counts of a killed nbdkit
        with self._arguments(wanted) as (arguments, descriptors):
            self._server.start(arguments, descriptors)

    def replace(self, wanted: VolumeAttachment, swap: Callable[[Path], None]) -> None:
        """Replace the running filters by the requested ones.

        :param swap: switches the front to the stack at a socket
        :raises PeerError: when they do not start; the old ones keep serving
        """
        with self._page() as page, self._arguments(wanted) as (arguments, descriptors):
            page.set_limits(VolumeLimits().page_limits())  # requests that wait for limits would delay the replacement
            try:
                self._server.replace(arguments, swap, descriptors)
            finally:
                page.set_limits(wanted.limits_in_force().page_limits())

    def recover(self, used: Path | None) -> None:
        """Finish or undo a replacement that a konnector left in its middle; ``used`` is the front's stack."""
        self._server.recover(used)

    def restart(self, wanted: VolumeAttachment) -> None:
        """Start the stack again, and ended processes of its source; users wait.

        :raises SluiceError: as of :meth:`start`
        """
        self._server.stop()  # it answers with errors
        self.start(wanted)

    def renew(self, wanted: VolumeAttachment) -> None:
        """Start the stack and its whole source again, which then has its present size; users wait.

        :raises SluiceError: as of :meth:`start`
        """
        self._server.stop()  # before its source, or it would answer with errors
        self.source.end()
        self.start(wanted)

    def process(self) -> ProcessRecord | None:
        """Its nbdkit; None when it does not run."""
        return self._server.process()

    def socket(self) -> Path:
        """The socket of the present or last nbdkit."""
        return self._server.socket()

    def end(self) -> None:
        """End the stack, and the processes of its source.

        :raises PeerError: when one does not end
        """
        self._header.end()
        self._server.end()
        self.source.end()
        if self.log.exists() and not self.log.stat().st_size:
            self.log.unlink()

    def set_limits(self, limits: VolumeLimits) -> None:
        """Apply limits at once, also to waiting requests.

        :raises CallerError: when one is negative or too large
        """
        with self._page() as page:
            page.set_limits(limits.page_limits())

    def set_log(self, on: bool) -> None:
        """Switch the log of requests on or off."""
        with self._page() as page:
            page.set_log(on)

    def counters(self) -> Counters:
        """Return the counts since it was attached.

        :raises NotFound: while it is being attached or detached
        """
        with self._page() as page:
            return page.counters()

    @property
    def _page_file(self) -> Path:
        return self.folder / "page"

    @contextlib.contextmanager
    def _page(self) -> Iterator[Page]:
        try:
            page = Page.open(self._page_file)
        except FileNotFoundError as error:
            raise NotFound(f"volume `{self.folder.name}` has no stack at this moment") from error
        try:
            yield page
        finally:
            page.close()

    @contextlib.contextmanager
    def _arguments(self, wanted: VolumeAttachment) -> Iterator[tuple[list[str], tuple[int, ...]]]:
        """Yield nbdkit's arguments, and the descriptors that they name."""
        source = self.source.start()
        with open_passphrase(wanted.secret) as descriptor:
            given = nbdkit_arguments(
                pairs(wanted.steps()),
                source,
                self.built,
                self._page_file,
                self.log,
                descriptor,
                wanted.asked_size,
                self.keeper,
            )
            yield given, (descriptor,)
