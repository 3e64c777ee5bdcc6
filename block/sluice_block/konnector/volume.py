"""One volume on this machine: its stack, its front, its device; attached, replaced, found again, detached.

Theory of operation.  What was asked for is written to the disk before anything is started (:mod:`state_files`), and
removed after everything has ended.  :meth:`AttachedVolume.attach` starts what does not run, so the same call makes a
volume, finishes one that a crash left half-made, and builds it anew after a reboot.

* The stack may die and come back: its users wait.
* When the front dies (the storage daemon, or nbdfuse) users get I/O errors, and a new front behind the same device
  would give them a volume that lost what they had written last.  So the volume is *broken* until nobody holds the
  device.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sluice_block.konnector.datapath import loop_devices
from sluice_block.konnector.datapath.front import Front
from sluice_block.konnector.datapath.fuse_mount import FuseMount
from sluice_block.konnector.datapath.sources import Source
from sluice_block.konnector.datapath.stack_server import StackServer
from sluice_block.konnector.records import ATTACHED, BLOCK, BROKEN, DETACHING, VolumeAttachment, VolumeLimits
from sluice_block.konnector.state_files import StateFiles
from sluice_block.stack.filters import changes_content, nbdkit_arguments
from sluice_block.stack.page import Counters, Page
from sluice_core.describe import Scalar
from sluice_core.errors import Conflict
from sluice_core.volumes.messages import StackStep

log = logging.getLogger(__name__)

Steps = Sequence[tuple[str, Mapping[str, Scalar]]]


@dataclass(eq=False)
class AttachedVolume:
    """:param built: folder of our filters for nbdkit
    :param folder: of its sockets, mounts and records; gone after a reboot
    """

    attachment: VolumeAttachment
    files: StateFiles
    folder: Path
    built: Path
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.stack = StackServer(self.folder)
        self.source = Source(self.attachment.connection, self.folder)
        self.front = Front(self.folder, self.attachment.volume)
        self.mount = FuseMount(self.folder)

    def device(self) -> str:
        """Its block device, or the URI of its NBD socket; empty when there is none yet."""
        if self.attachment.export == BLOCK:
            return self.mount.device()
        return f"nbd+unix:///{self.attachment.volume}?socket={self.front.socket}" if self.front.process() else ""

    # -- attach and detach ---------------------------------------------------------------------

    def attach(self) -> None:
        """Start whatever of it does not run.

        :raises CallerError: when its connection or its stack cannot be used
        :raises PeerError: when a program does not start
        """
        with self.lock:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.front.process() is not None:
                self.stack.recover(self.front.stack())
            self._start_stack()
            if self.front.process() is None:
                self.front.start(self.stack.socket())
            if self.attachment.export == BLOCK:
                if self.mount.process() is None:
                    self.mount.start(self.front.socket, self.attachment.volume)
                if not self.mount.device():
                    loop_devices.make(self.mount.image)
            self._note(ATTACHED)

    def detach(self) -> None:
        """End everything, and forget it; may be called again after a crash.

        :raises Conflict: while somebody holds the device, naming who
        :raises PeerError: when something does not end
        """
        with self.lock:
            device = self.mount.device()
            if device:
                loop_devices.check_unused(device)
            self._note(DETACHING)
            self._tear_down(device)
            self.files.remove(self.attachment.volume)

    def halt(self) -> None:
        """End everything as the machine does when it halts: what was asked for stays.

        :raises Conflict: while somebody holds the device, naming who
        :raises PeerError: when something does not end
        """
        with self.lock:
            device = self.mount.device()
            if device:
                loop_devices.check_unused(device)
            self._tear_down(device)

    def _tear_down(self, device: str) -> None:
        if device:
            loop_devices.remove(device)
        self.mount.end()
        self.front.end()
        self.stack.end()
        self.source.end()
        if self.folder.exists():
            shutil.rmtree(self.folder)

    # -- the stack -----------------------------------------------------------------------------

    def steps(self) -> Steps:
        """The filters of its stack with their parameters."""
        return [(one.keyword, one.params) for one in self.attachment.stack]

    def replace_stack(self, steps: Sequence[StackStep]) -> None:
        """Put another chain of filters in the place of its stack while I/O waits.

        :raises CallerError: when it is none
        :raises Conflict: when it would read what is stored in another way
        :raises PeerError: when it does not start; the old one serves on
        """
        with self.lock:
            fresh = [(one.keyword, one.params) for one in steps]
            if changes_content(fresh) != changes_content(self.steps()):
                raise Conflict(
                    f"volume `{self.attachment.volume}` stores its bytes {_names(changes_content(self.steps()))}, "
                    f"and this stack would read them {_names(changes_content(fresh))}"
                )
            with self._page() as page:
                page.set_limits(VolumeLimits().page_limits())  # what waits for them would hold the replacement up
                try:
                    self.stack.replace(self._arguments(fresh), self.front.swap)
                finally:
                    page.set_limits(self.attachment.limits.page_limits())
            self._keep(replace(self.attachment, stack=tuple(steps)))

    def _start_stack(self) -> None:
        with self._page() as page:
            page.set_limits(self.attachment.limits.page_limits())
            if self.stack.process() is not None:
                return
            page.reset_under_way()  # of a nbdkit that was killed
        self.stack.start(self._arguments(self.steps()))

    def _arguments(self, steps: Steps) -> list[str]:
        return nbdkit_arguments(steps, self.source.start(), self.built, self.folder / "page")

    # -- limits and counters -------------------------------------------------------------------

    def set_limits(self, limits: VolumeLimits) -> None:
        """Put limits in force: at once, also for requests that wait already.

        :raises CallerError: when one is negative or too large
        """
        with self.lock:
            with self._page() as page:
                page.set_limits(limits.page_limits())
            self._keep(replace(self.attachment, limits=limits))

    def counters(self) -> Counters:
        """What was counted since it was attached."""
        with self._page() as page:
            return page.counters()

    @contextlib.contextmanager
    def _page(self) -> Iterator[Page]:
        path = self.folder / "page"
        page = Page.open(path) if path.exists() else Page.create(path)
        try:
            yield page
        finally:
            page.close()

    # -- while it is attached ------------------------------------------------------------------

    def adopt(self) -> None:
        """Take it over after a restart of the konnector, or of the machine.

        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            if self.front_is_alive() or not self.folder.exists():
                self.attach()
            else:
                self.break_down()

    def front_is_alive(self) -> bool:
        """Whether its users can reach it."""
        if self.front.process() is None:
            return False
        return self.attachment.export != BLOCK or self.mount.process() is not None

    def break_down(self) -> None:
        """Its front has ended: build it anew when nobody holds the device, else it is broken.

        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            device = self.mount.device()
            try:
                if device:
                    loop_devices.check_unused(device)
            except Conflict as error:
                self._note(BROKEN)
                log.error("volume `%s` is broken, its users get I/O errors: %s", self.attachment.volume, error)
                return
            self._tear_down(device)
            self.attach()

    def check(self) -> None:
        """Bring back what has ended.

        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            if self.attachment.state != ATTACHED:
                return
            if not self.front_is_alive():
                self.break_down()
            elif self.source.has_ended() or self.stack.process() is None:
                log.warning("the stack of volume `%s` has ended, it is started again", self.attachment.volume)
                if self.source.has_ended():
                    self.stack.stop()  # it answers with errors
                self._start_stack()

    def processes(self) -> list[int]:
        """Pid file descriptors of its processes, for who waits for their end and closes them."""
        records = [one.process() for one in (self.stack, self.source, self.front, self.mount)]
        opened = (one.open() for one in records if one is not None)
        return [one for one in opened if one is not None]

    def to_data(self) -> dict[str, Any]:
        """What may be shown: no connection."""
        data = self.attachment.to_data()
        del data["connection"]
        return {**data, "device": self.device()}

    def _note(self, state: str) -> None:
        if state != self.attachment.state:
            self._keep(replace(self.attachment, state=state))

    def _keep(self, attachment: VolumeAttachment) -> None:
        self.files.write(attachment)
        self.attachment = attachment


def _names(steps: Steps) -> str:
    return "through " + ", ".join(f"`{keyword}`" for keyword, _ in steps) if steps else "as they are"
