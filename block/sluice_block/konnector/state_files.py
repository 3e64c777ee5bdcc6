"""What was asked of the konnector, on disk: one file for each volume, which survives a reboot."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice_block.konnector.records import VolumeAttachment
from sluice_core.errors import DecodeError, PeerError

log = logging.getLogger(__name__)

_SUFFIX = ".volume"


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files, in ``folder``; they hold secrets of connections and are the user's alone."""

    folder: Path

    def read_all(self) -> Iterator[VolumeAttachment]:
        """All of them; one that cannot be read is logged and left alone."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            try:
                yield VolumeAttachment.decode(path.read_bytes())
            except (OSError, DecodeError) as error:
                log.error("`%s` cannot be read, its volume is not looked after: %s", path, error)

    def check_none(self, volume: str) -> None:
        """
        :raises PeerError: when there is a file of ``volume``, which cannot have been read then
        """
        path = self._path(volume)
        if path.exists():
            raise PeerError(f"`{path}` cannot be read, so what is attached here of volume `{volume}` is not known")

    def write(self, attachment: VolumeAttachment) -> None:
        """Keep it; it is on the disk when this returns.

        :raises PeerError: when it cannot be written
        """
        path = self._path(attachment.volume)
        fresh = path.with_suffix(".new")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(attachment.encode())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            self._sync_folder()
        except OSError as error:
            raise PeerError(f"`{path}` cannot be written: {error}") from error

    def remove(self, volume: str) -> None:
        """Forget it.

        :raises PeerError: when the file cannot be removed
        """
        try:
            self._path(volume).unlink(missing_ok=True)
            self._sync_folder()
        except OSError as error:
            raise PeerError(f"`{self._path(volume)}` cannot be removed: {error}") from error

    def _path(self, volume: str) -> Path:
        return self.folder / f"{volume}{_SUFFIX}"

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
