"""What was divided for this node: the newest counts, for as long as nothing newer comes, and over a restart.

A restarted agent knows nothing, and the node's workers are at it again within a second: so that none of them runs
free until the next round, which may be far away, the last shares lie in a small file beside the snapshot.  However old
it is, it counts until something newer comes, as it would have with an agent that lived on.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Shares

log = logging.getLogger(__name__)

#: Follows the name of the snapshot's folder in that of the file.
SUFFIX: Final = ".shares"
#: Seconds without news after which that is told, and rounds of a host that counts from the beginning again are taken.
_SILENCE: Final = 10.0
#: Seconds between two writes, and after which newer shares are written though their rates are the same.
_SOONEST: Final = 1.0
_LATEST: Final = 15.0
#: Part by which a rate must differ to be written soon.
_CHANGE: Final = 0.1


class Inbox:
    """Takes messages of the broker, in whatever order they come; calls ``took`` for each that is newer."""

    def __init__(
        self,
        node: str,
        took: Callable[[Shares], None],
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param file: where the last shares are kept; None: nowhere
        """
        self._node = node
        self._took = took
        self._file = file
        self._clock = clock
        self._heard = clock()
        self._silent = False
        self._wrote = -math.inf
        self._written: Shares | None = None
        #: The newest; None while none has come.
        self.last: Shares | None = None

    def restore(self) -> None:
        """Go on by what the agent before this one knew."""
        if self._file is None:
            return
        try:
            age = time.time() - self._file.stat().st_mtime
            shares = Shares.decode(self._file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, DecodeError) as error:
            log.warning("cannot read the last shares in `%s`: %s", self._file, error)
            return
        if shares.node == self._node:
            log.info("goes on by shares that are %.0f s old", age)
            self.last = self._written = shares
            self._took(shares)

    def received(self, routing_key: str, body: bytes) -> None:
        """A message came.

        :raises DecodeError: when it is none of ours
        """
        shares = Shares.decode(body)
        if shares.node != self._node:
            return
        last = self.last
        if last is not None and (shares.term, shares.number) <= (last.term, last.number):
            if self._clock() - self._heard <= _SILENCE:
                return
            log.warning("takes shares of term %d after those of term %d, which ended", shares.term, last.term)
        if self._silent:
            log.info("shares are divided again")
        self._heard, self._silent = self._clock(), False
        self.last = shares
        self._took(shares)

    def tick(self) -> None:
        """Once a second: tell of silence, and keep what is known."""
        if not self._silent and self.last is not None and self._clock() - self._heard > _SILENCE:
            self._silent = True
            log.warning("no shares for %g s; the last ones stay in force", _SILENCE)
        if self._file is not None and self.last is not None:
            self._keep(self._file, self.last)

    def _keep(self, file: Path, shares: Shares) -> None:
        since = self._clock() - self._wrote
        if shares is self._written or since < _SOONEST or (since < _LATEST and not differ(self._written, shares)):
            return
        self._wrote = self._clock()
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            fresh.write_bytes(shares.encode())
            fresh.replace(file)
            self._written = shares
        except OSError as error:
            log.warning("cannot keep the last shares in `%s`: %s", file, error)
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)


def differ(old: Shares | None, new: Shares) -> bool:
    """A rate, ceiling or floor is another by more than a tenth, or rows came or went."""
    if old is None or old.newcomer.keys() != new.newcomer.keys():
        return True
    before = {(row.side, row.flow): row for row in old.rows}
    after = {(row.side, row.flow): row for row in new.rows}
    if before.keys() != after.keys():
        return True
    return any(
        not math.isclose(was, now, rel_tol=_CHANGE)
        for key, row in after.items()
        for was, now in zip(before[key][5:8], row[5:8], strict=True)
    )
