"""The shares of this node: the newest ones stay in force until newer ones arrive, also over a restart.

The workers of a node reconnect to a restarted agent within a second; the next allocation round may come much later.
To keep every worker limited until then, the agent stores the last shares in a small file beside the snapshot.  Shares
of any age stay in force, as they would with an agent that had not restarted.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Shares

log = logging.getLogger(__name__)

#: The file has the name of the snapshot's folder with this suffix.
SUFFIX: Final = ".shares"
#: Seconds without shares after which that is logged, and shares of an earlier term are accepted.
_SILENCE: Final = 10.0
#: Seconds between two writes of the file: the least, and the most, even when the rates stay the same.
_MIN_WRITE_INTERVAL: Final = 1.0
_MAX_WRITE_INTERVAL: Final = 15.0
#: Relative change of a rate that is written soon.
_CHANGE: Final = 0.1


@dataclass(eq=False)
class ShareReceiver:
    """Receives the broker's messages in any order; calls ``on_shares`` for each that is newer than all before."""

    node: str
    on_shares: Callable[[Shares], None]
    #: Keeps the last shares; None: no file.
    file: Path | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._received_at = self.clock()
        self._silent = False
        self._written_at = -math.inf
        self._written: Shares | None = None
        #: The newest shares; None before the first.
        self.last: Shares | None = None

    def restore(self) -> None:
        """Apply the shares of the previous agent of this node."""
        if self.file is None:
            return
        try:
            age = time.time() - self.file.stat().st_mtime
            shares = Shares.decode(self.file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, DecodeError) as error:
            log.warning("cannot read the last shares in `%s`: %s", self.file, error)
            return
        if shares.node == self.node:
            log.info("applies stored shares that are %.0f s old", age)
            self.last = self._written = shares
            self.on_shares(shares)

    def receive(self, routing_key: str, body: bytes) -> None:
        """Handle one message.

        :raises DecodeError: when the message contains no shares
        """
        shares = Shares.decode(body)
        if shares.node != self.node:
            return
        last = self.last
        if last is not None and (shares.term, shares.number) <= (last.term, last.number):
            if self.clock() - self._received_at <= _SILENCE:
                return
            log.warning("takes shares of term %d after those of term %d, which ended", shares.term, last.term)
        if self._silent:
            log.info("shares are divided again")
        self._received_at, self._silent = self.clock(), False
        self.last = shares
        self.on_shares(shares)

    def tick(self) -> None:
        """Once a second: log silence, and write the file when that is due."""
        if not self._silent and self.last is not None and self.clock() - self._received_at > _SILENCE:
            self._silent = True
            log.warning("no shares for %g s; the last ones stay in force", _SILENCE)
        if self.file is not None and self.last is not None:
            self._write(self.file, self.last)

    def _write(self, file: Path, shares: Shares) -> None:
        since = self.clock() - self._written_at
        if (
            shares is self._written
            or since < _MIN_WRITE_INTERVAL
            or (since < _MAX_WRITE_INTERVAL and not differs(self._written, shares))
        ):
            return
        self._written_at = self.clock()
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            fresh.write_bytes(shares.encode())
            fresh.replace(file)
            self._written = shares
        except OSError as error:
            log.warning("cannot keep the last shares in `%s`: %s", file, error)
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)


def differs(old: Shares | None, new: Shares) -> bool:
    """Whether a rate, floor or ceiling changed by more than a tenth, or rows were added or removed."""
    if old is None or old.newcomer.keys() != new.newcomer.keys():
        return True
    before, after = (
        {(row.side, row.flow): (row.rate, row.floor, row.ceiling) for row in shares.rows} for shares in (old, new)
    )
    return before.keys() != after.keys() or any(
        not math.isclose(was, now, rel_tol=_CHANGE)
        for flow, figures in after.items()
        for was, now in zip(before[flow], figures, strict=True)
    )


@dataclass(eq=False)
class VolumeShareFile:
    """Writes the shares of the volumes of ``node`` to ``file``; the order of their messages does not matter.

    The newest shares are stored beside the snapshot, where the node's konnector reads them.  They stay in force until
    newer ones arrive, also over a restart of the agent or of the konnector.
    """

    node: str
    file: Path
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._received_at = self.clock()
        self._last = (0, 0)

    def receive(self, body: bytes) -> None:
        """Handle one message.

        :raises DecodeError: when the message contains no shares
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
