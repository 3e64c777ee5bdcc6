"""One volume on this machine: its stack and its device; attached, found again, detached.

Theory of operation.  The requested attachment is written to the disk before a process is started
(:class:`.StateFiles`), and removed after everything has ended.  :meth:`AttachedVolume.attach` starts the processes that
do not run, so the same call attaches a volume, finishes an attach that a crash interrupted, and repeats it after a
reboot.

* A volume that a konnector takes over may have been attached to another machine meanwhile.  Its running processes
  continue, and none is started before the control plane has *confirmed* its attachment: until then it is *waiting*.
  Only a connection that the end of its attachment has fenced off needs no confirmation, since it then leads nowhere.
* The stack may end and be restarted: its users wait.
* An uploaded filter stands between its stack and its source (:mod:`sluice_block.uploaded.stage`).  When it fails
  repeatedly the volume is broken, too.
* When the front ends (the keeper of its device; or the storage daemon, or nbdfuse) users get I/O errors, and a new
  front behind the same device would give them a volume that lost their last writes.  So the volume is *broken* until
  its device is unused.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sluice_block.datapath.exported_device import ExportDaemon, ExportedDevice, FuseMount, VolumeExport
from sluice_block.datapath.fuse_device import FuseDevice, is_supported
from sluice_block.datapath.records import (
    ATTACHED,
    ATTACHING,
    BLOCK,
    BROKEN,
    DETACHING,
    WAITING,
    StateFiles,
    VolumeAttachment,
    VolumeLimits,
)
from sluice_block.datapath.source import Source
from sluice_block.datapath.volume_stack import VolumeStack
from sluice_block.stack.page import Counters
from sluice_block.uploaded.catalogue import UploadedFilters
from sluice_block.uploaded.stage import FilterFault, UploadedStage
from sluice_core.errors import Conflict, SluiceError
from sluice_volumes.messages import FENCING, RbdLocality

log = logging.getLogger(__name__)

#: The reason why it is not attached again.
_WAITS: Final = "it is not attached again before the control plane has said that its attachment still holds"
#: In a fault: between the operation and the reason why it does not end.
_NOT_ENDED: Final = "; what is left of it does not end: "


@dataclass(eq=False)
class AttachedVolume:
    """:param built: folder of Sluice's filters for nbdkit
    :param folder: of its sockets, mounts and records; empty after a reboot
    :param log: file of its log of requests
    :param filters: the uploaded filters
    """

    attachment: VolumeAttachment
    files: StateFiles
    folder: Path
    built: Path
    log: Path
    filters: UploadedFilters
    lock: threading.RLock = field(default_factory=threading.RLock)
    #: Its part of its pool's capacity, besides its limits.
    share: VolumeLimits = field(default_factory=VolumeLimits)
    #: Whether its attachment was requested, or confirmed, since this konnector began.
    confirmed: bool = False
    #: Since when it waits for that, monotonic seconds; None: it does not wait.
    waiting_since: float | None = None

    def __post_init__(self) -> None:
        self.front = ExportDaemon(self.folder, self.attachment.volume)
        self.mount = FuseMount(self.folder)
        self.export = self._make_export()
        self.source = self._make_source()
        self.stack = VolumeStack(self.folder, self.built, self.source, self.log, self.export.keeper)

    def _make_export(self) -> VolumeExport:
        """Make the export, of the same kind as an existing one, possibly of an earlier konnector."""
        if self.attachment.export == BLOCK and not self.front.is_known():
            device = FuseDevice(self.folder, self.built)
            if device.is_known() or is_supported(self.built):
                return device
        return ExportedDevice(self.front, self.mount, self.attachment.export, self.attachment.volume)

    def _make_source(self) -> Source | UploadedStage:
        """Make the source of the stack."""
        connection = self.attachment.connection
        for step in self.attachment.uploaded:
            source = Source(connection, self.folder)
            return UploadedStage(step, source, self.filters, self.folder, self.built, self.attachment.volume)
        return Source(connection, self.folder, self.built, self.export.keeper)

    def device(self) -> str:
        """Its block device, or the URI of its NBD socket; empty without one."""
        return self.export.address()

    @property
    def state(self) -> str:
        """The state of the volume for other services."""
        return self.attachment.state if self.waiting_since is None else WAITING

    @property
    def fault(self) -> str:
        """The fault of the volume; empty without one."""
        if self.waiting_since is None:
            return self.attachment.fault
        return "it is not attached again yet, the log says why" if self.confirmed else _WAITS

    # -- attach and detach ---------------------------------------------------------------------

    def attach(self) -> None:
        """Start its processes that do not run.

        :raises CallerError: when its connection or its stack cannot be used
        :raises PeerError: when a program does not start
        """
        with self.lock:
            for folder in (self.folder, self.log.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.stack.recover(self.export.used_stack())
            self.export.prepare()
            if self.attachment.state == ATTACHING:
                self.stack.prepare(self.attachment)
            self.stack.start(self.attachment)
            self.export.start(self.stack.socket())
            size = self.export.size()
            self.keep(replace(self.attachment, state=ATTACHED, fault="", fresh=False, size=size))

    def detach(self) -> None:
        """End all its processes, and remove its record; may be called again after a crash.

        :raises Conflict: while its device is in use, naming the user
        :raises PeerError: when a process does not end
        """
        with self.lock:
            self.export.check_unused()
            self.waiting_since = None
            self._note(DETACHING)
            self._tear_down()
            self.files.remove(self.attachment.volume)

    def undo_attach(self, reason: str) -> None:
        """Undo a failed attach; if a process does not end, the record stays, with the reason, for another attempt.

        :param reason: why it failed
        :raises SluiceError: as of :meth:`detach`
        """
        with self.lock:
            fault = f"its attach failed and is undone: {reason}"
            self.attachment = replace(self.attachment, state=DETACHING, fault=fault)  # written if a process stays
            self.retry_detach()

    def retry_detach(self) -> None:
        """End the remaining processes of a detach, or of a failed attach.

        :raises SluiceError: as of :meth:`detach`, which is recorded as the fault
        """
        with self.lock:
            try:
                self.detach()
            except SluiceError as error:
                begun = self.attachment.fault.partition(_NOT_ENDED)[0] or "its detach was begun"
                fault = f"{begun}{_NOT_ENDED}{error}"
                if fault != self.attachment.fault:
                    log.error("volume `%s` stays: %s", self.attachment.volume, fault)
                    self.keep(replace(self.attachment, fault=fault))
                raise

    def revoke(self) -> None:
        """Stop the service after the attachment was ended elsewhere: users get I/O errors at once, permanently.

        :raises PeerError: when a process does not end
        """
        with self.lock:
            if not self.attachment.revoked:
                fault = f"its attachment `{self.attachment.attachment}` was ended by force"
                log.error("volume `%s` is not served any more: %s", self.attachment.volume, fault)
                self.keep(replace(self.attachment, state=BROKEN, revoked=True, fault=fault))
            self.waiting_since = None
            self._end_service()

    def halt(self) -> None:
        """End all its processes for a shutdown of the machine; its record stays.

        :raises Conflict: while its device is in use, naming the user
        :raises PeerError: when a process does not end
        """
        with self.lock:
            self.export.check_unused()
            self._tear_down()

    def _end_service(self) -> None:
        """Let users' requests fail with I/O errors from now on."""
        self.export.break_off()
        self.stack.end()

    def _tear_down(self) -> None:
        if self.stack.process() is None:
            self.export.break_off()  # no process would answer requests at the close of the device
        self.export.end()
        self.stack.end()
        if self.folder.exists():
            shutil.rmtree(self.folder)

    # -- while it is used ----------------------------------------------------------------------

    def counters(self) -> Counters:
        """Return the counts since it was attached.

        :raises NotFound: while it is being attached or detached
        """
        return self.stack.counters()

    def locality(self) -> RbdLocality | None:
        """Return where it is stored; None if not in Ceph.  Other calls do not wait for Ceph's answer.

        :raises Conflict: while it is being attached or detached
        :raises PeerError: when Ceph does not answer
        """
        if self.state not in (ATTACHED, BROKEN):
            raise Conflict(f"volume `{self.attachment.volume}` is {self.state} here")
        return Source(self.attachment.connection, self.folder).locality()

    # -- processes that end and are restarted ------------------------------------------------------

    def adopt(self) -> None:
        """Take the volume over after a restart of the konnector, or of the machine.

        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            if not self._may_start() and not self._runs():
                self._wait()
                return
            if self.export.is_alive() or not self.folder.exists():
                self.attach()
            else:
                self.break_down()
            self.waiting_since = None

    def is_unconfirmed(self) -> bool:
        """Whether the volume was taken over and its attachment is not confirmed yet."""
        asked = self.attachment.attachment and not self.confirmed
        return bool(asked) and not self.attachment.revoked and self.attachment.state != DETACHING

    def _may_start(self) -> bool:
        """Whether processes that are started now may use its source."""
        fenced = self.attachment.connection.get("driver_volume_type") in FENCING
        return self.confirmed or fenced or not self.attachment.attachment

    def _runs(self) -> bool:
        """Whether all its processes run."""
        return self.export.is_alive() and self.stack.process() is not None and not self.source.has_ended()

    def _wait(self) -> None:
        if self.waiting_since is None:
            log.warning("volume `%s` waits: %s", self.attachment.volume, _WAITS)
            self.waiting_since = time.monotonic()

    def break_down(self) -> None:
        """Handle the end of the front: build it again when the device is unused, else mark the volume as broken.

        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            try:
                self.export.check_unused()
            except Conflict as error:
                self._break(f"its front has ended while {error}")
                self._end_service()
                return
            self._tear_down()
            self.attach()

    def check(self, devices: Mapping[str, str]) -> None:
        """Restart ended processes.

        :param devices: the machine's loop devices, from :func:`loop_devices.by_file`
        :raises SluiceError: as of :meth:`attach`
        """
        with self.lock:
            if self.waiting_since is not None:
                self.adopt()
                return
            if self.attachment.state != ATTACHED:
                return
            if not self._may_start() and not self._runs():
                self._wait()
                return
            if not self.export.is_alive():
                self.break_down()
                return
            try:
                self._bring_back()
                if self.export.lacks_device(devices):
                    log.warning("the device of volume `%s` was removed, it gets another", self.attachment.volume)
                    self.export.start(self.stack.socket())
            except FilterFault as error:  # its users get errors at once, and do not wait
                self._break(str(error))
                self._end_service()

    def _bring_back(self) -> None:
        if isinstance(self.source, UploadedStage):
            self.source.watch()
        if self.source.has_ended():
            log.warning("the source of volume `%s` has ended, it is started again", self.attachment.volume)
            self.stack.restart(self.attachment)
        elif self.stack.process() is None:
            log.warning("the stack of volume `%s` has ended, it is started again", self.attachment.volume)
            self.stack.start(self.attachment)

    def processes(self) -> list[int]:
        """Pid file descriptors of its processes, for a caller that waits for their end and closes them."""
        records = [self.stack.process(), self.source.process(), *self.export.processes()]
        opened = (one.open() for one in records if one is not None)
        return [one for one in opened if one is not None]

    def to_data(self) -> dict[str, Any]:
        """Return the fields that may be shown: no connection, no secret."""
        shown = {**self.attachment.shown(self.share), "state": self.state, "fault": self.fault}
        here = {"device": self.device(), "data_path": self.export.kind, "log_file": str(self.log)}
        return {**shown, **here}

    def _break(self, fault: str) -> None:
        if self.attachment.state != BROKEN:
            log.error("volume `%s` is broken, its users get I/O errors: %s", self.attachment.volume, fault)
            self.keep(replace(self.attachment, state=BROKEN, fault=fault))

    def _note(self, state: str) -> None:
        if state != self.attachment.state:
            self.keep(replace(self.attachment, state=state, fault=""))

    def keep(self, attachment: VolumeAttachment) -> None:
        """Record ``attachment`` as the requested one; on the disk first.

        :raises PeerError: when it cannot be written
        """
        self.files.write(attachment)
        self.attachment = attachment
