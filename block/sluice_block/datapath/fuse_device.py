"""A block device that the volume's own nbdkit serves: a file of FUSE, and a loop device over it.

Theory of operation.  A keeper (``native/fuse/keeper.c``) has mounted the file and holds its FUSE device; the stack's
first filter (``native/fuse/filter.c``) receives that from it and serves.  As long as the keeper runs, nbdkit may be
replaced, or end and be started again: the kernel holds requests meanwhile, and sends unanswered ones again (Linux 6.9).

No function here accesses the file itself: while no nbdkit serves, the kernel blocks such a process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

from sluice_block.datapath import loop_devices, processes
from sluice_block.datapath.processes import ProcessRecord, end_recorded, read_living, unmount, write_record
from sluice_block.stack.build import fuse_keeper
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

#: Seconds within which the keeper must have mounted the file.
_START: Final = 20.0


@cache
def is_supported(built: Path) -> bool:
    """Whether this machine's kernel supports it.

    :param built: folder of Sluice's filters for nbdkit
    """
    try:
        processes.run([str(fuse_keeper(built)), "check"], "block devices are not served by nbdkit itself")
    except PeerError as error:
        log.warning("%s; qemu-storage-daemon and nbdfuse serve them", error)
        return False
    return True


@dataclass(frozen=True, slots=True)
class FuseDevice:
    """The device of one volume.

    :param folder: of the volume
    :param built: folder of the keeper's program
    """

    folder: Path
    built: Path

    kind: ClassVar[str] = "fuse"

    @property
    def image(self) -> Path:
        """The file."""
        return self.folder / "mount" / "image"

    @property
    def keeper(self) -> Path:
        """The socket of the keeper."""
        return self.folder / "keeper.sock"

    def is_known(self) -> bool:
        """Whether its keeper was started, even if it has ended."""
        return self._record.exists()

    def prepare(self) -> None:
        """Start the keeper if it does not run; call this before the stack is started.

        :raises PeerError: with its output, when it does not start
        """
        if self.process() is not None:
            return
        unmount(self.image)  # remove the mount of an ended keeper
        self.image.parent.mkdir(mode=0o700, exist_ok=True)
        self.image.touch()
        ready = self.folder / "keeper.pid"
        ready.unlink(missing_ok=True)
        command = [str(fuse_keeper(self.built)), str(self.image), str(self.keeper), str(ready)]
        write_record(self._record, processes.start_until_ready(command, self.folder / "keeper.log", ready, _START))

    def start(self, stack: Path) -> None:
        """Make the loop device if it is missing, while the stack serves.

        :raises PeerError: when it cannot be made
        """
        if not self.address():
            loop_devices.make(self.image)

    def process(self) -> ProcessRecord | None:
        """The keeper; None when it does not run."""
        return read_living(self._record)

    def processes(self) -> list[ProcessRecord | None]:
        """The processes besides the stack."""
        return [self.process()]

    def is_alive(self) -> bool:
        """Whether users can use it, or wait for the stack."""
        return self.process() is not None

    def address(self) -> str:
        """The block device; empty without one."""
        return loop_devices.find(self.image)

    def size(self) -> int:
        """Return the size in bytes for users.

        :raises PeerError: when there is no device
        """
        return loop_devices.size(self.address())

    def lacks_device(self, devices: Mapping[str, str]) -> bool:
        """Whether the block device was removed by another process.

        :param devices: recent result of :func:`loop_devices.by_file`
        """
        return str(self.image) not in devices and not self.address()

    def check_unused(self) -> None:
        """
        :raises Conflict: while a process holds the device, naming it
        """
        device = self.address()
        if device:
            loop_devices.check_unused(device)

    def used_stack(self) -> None:
        """It has no front, which would use one of two stacks."""

    def swap(self, stack: Path) -> None:
        """Do nothing: a new stack replaces the former one by itself."""

    def break_off(self) -> None:
        """Let users' requests fail with I/O errors, also after the end of the stack.

        :raises PeerError: when the keeper does not end
        """
        end_recorded(self._record, patience=0)

    def end(self) -> None:
        """End all its processes.

        :raises PeerError: when one does not end
        """
        device = self.address()
        if device:
            loop_devices.remove(device)
        unmount(self.image)
        end_recorded(self._record)
        if self.image.parent.exists():
            self.image.unlink(missing_ok=True)
            os.rmdir(self.image.parent)

    @property
    def _record(self) -> Path:
        return self.folder / "keeper.process"
