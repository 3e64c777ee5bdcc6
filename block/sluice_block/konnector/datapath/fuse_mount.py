"""The file that shows a volume to the kernel: nbdfuse over the front's NBD socket, and a loop device over it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sluice_block.konnector.datapath import loop_devices, processes
from sluice_block.konnector.datapath.process_records import ProcessRecord, end_recorded, read_living, write_record
from sluice_core.errors import PeerError

PROGRAM: Final = "nbdfuse"
#: Seconds within which it must show the file.
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class FuseMount:
    """The mount of one volume, at ``folder/mount``."""

    folder: Path

    @property
    def image(self) -> Path:
        """The file that shows the volume."""
        return self._place / "image"

    def start(self, server: Path, name: str) -> ProcessRecord:
        """Mount it.

        :param server: the NBD socket, which shows the export ``name``
        :raises PeerError: when the file does not appear
        """
        self.end()  # what is left of one whose process has ended
        self._place.mkdir(mode=0o700, exist_ok=True)
        source = f"nbd+unix:///{quote(name, safe='')}?socket={quote(str(server))}"
        ready, log = self.folder / "fuse.pid", self.folder / "fuse.log"
        ready.unlink(missing_ok=True)
        command = [PROGRAM, "--pidfile", str(ready), str(self.image), source]
        record = processes.start_until_ready(command, log, ready, _PATIENCE)
        if not processes.wait_until(self.is_mounted, _PATIENCE):
            record.end()
            raise PeerError(f"`{self.image}` does not appear: {processes.last_lines(log)}")
        write_record(self._record, record)
        return record

    def process(self) -> ProcessRecord | None:
        """Its process; None when it does not run."""
        return read_living(self._record)

    def is_mounted(self) -> bool:
        """Whether something is mounted there, be it dead."""
        try:
            return self._place.stat().st_dev != self.folder.stat().st_dev
        except FileNotFoundError:
            return False
        except OSError:  # ENOTCONN: its process has ended
            return True

    def device(self) -> str:
        """The loop device over it; empty when there is none."""
        return loop_devices.find(self.image)

    def end(self) -> None:
        """Unmount it; nbdfuse ends by itself.

        :raises PeerError: when somebody uses it
        """
        if self.is_mounted():
            processes.run(["umount", str(self._place)], f"`{self._place}` stays mounted")
        end_recorded(self._record)
        if self._place.exists():
            os.rmdir(self._place)

    @property
    def _record(self) -> Path:
        return self.folder / "fuse.process"

    @property
    def _place(self) -> Path:
        return self.folder / "mount"
