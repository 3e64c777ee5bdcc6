"""The shares of this machine's volumes: the newest lie in a file beside the snapshot, where its konnector reads them.

They stay in force until newer ones come, also over a restart of the agent or of the konnector.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_core.messages.bandwidth import Shares

log = logging.getLogger(__name__)

#: Seconds without shares after which those of an earlier term are accepted.
_SILENCE: Final = 10.0


@dataclass(eq=False)
class VolumeShareFile:
    """Writes the shares of ``node`` to ``file``, whatever order they come in."""

    node: str
    file: Path
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._received_at = self.clock()
        self._last = (0, 0)

    def receive(self, body: bytes) -> None:
        """Handle one message.

        :raises DecodeError: when it is no message of shares
        """
        shares = Shares.decode(body)
        newer = (shares.term, shares.number) > self._last or self.clock() - self._received_at > _SILENCE
        if shares.node != self.node or not newer:
            return
        self._received_at, self._last = self.clock(), (shares.term, shares.number)
        fresh = self.file.with_name(f".{self.file.name}.new")
        try:
            fresh.write_bytes(body)
            fresh.chmod(0o644)
            fresh.replace(self.file)
        except OSError as error:
            log.warning("cannot keep the shares of volumes in `%s`: %s", self.file, error)
