"""The shares of volumes with floors, in the file that the agent keeps beside its snapshot."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from sluice_block.konnector.records import VolumeLimits
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, VOLUME_SHARES_SUFFIX, Share, Shares
from sluice_volumes.messages import volume_path

log = logging.getLogger(__name__)


class VolumeShares:
    """What the file says; it is read again when it is another one.

    :param snapshot: folder of the agent's snapshot
    """

    def __init__(self, snapshot: Path) -> None:
        self._file = Path(f"{snapshot}{VOLUME_SHARES_SUFFIX}")
        self._seen: tuple[int, int] | None = None
        self._shares: Mapping[str, VolumeLimits] = {}

    def read(self) -> Mapping[str, VolumeLimits]:
        """Path of a volume → the rates that it is held to beside its limits; without the file what it said last."""
        try:
            status = self._file.stat()
            seen = (status.st_ino, status.st_mtime_ns)
            if seen != self._seen:
                self._shares = _by_volume(Shares.decode(self._file.read_bytes()).rows)
                self._seen = seen
        except FileNotFoundError:
            pass
        except (OSError, DecodeError) as error:
            log.warning("shares in `%s` cannot be read: %s", self._file, error)
        return self._shares


def _by_volume(rows: tuple[Share, ...]) -> dict[str, VolumeLimits]:
    rates: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.rate >= 0:
            name = "read_bw" if row.method == GET else "write_bw"
            rates.setdefault(volume_path(row.account, row.container), {})[name] = row.rate
    return {path: VolumeLimits(**found) for path, found in rates.items()}
