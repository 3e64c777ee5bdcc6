"""The change stream for an actor host: the next changes, or the result that everything must be read again."""

from __future__ import annotations

import logging
from typing import Final

from sluice_core.messages.policies import Change
from sluice_core.store.history_check import HistoryCheck, change_digest
from sluice_core.store.records import Gap, Head
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

_BLOCK_MS: Final = 1000


class ChangeStream:
    """Follows the stream from ``head`` on, the position of the last change that was applied."""

    def __init__(self, store: AsyncStore) -> None:
        self.head = Head()
        self._store = store
        self._history_check = HistoryCheck()
        # Whether the connection may lead to another Redis since the last successful read.
        self._doubtful = True

    async def begin(self) -> Head:
        """Start from the store's current position; its contents are to be read after this."""
        self.head = await self._store.head()
        self._history_check.restart(self.head, await self._store.run(change_digest(self._store.keys, self.head.epoch)))
        self._doubtful = True
        return self.head

    async def next(self) -> list[Change] | None:
        """The next changes, empty after a second without any; None if everything must be read again."""
        if self._doubtful:
            there_is = await self._store.run(change_digest(self._store.keys, self.head.epoch))
            if self._history_check.broken(self.head, there_is):
                return self._report_gap(f"redis has another change {self.head.epoch} than we followed")
        self._doubtful = True  # unless this read completes
        changes = await self._store.changes_after(
            self.head.epoch, _BLOCK_MS, digest=self._history_check.digest(self.head)
        )
        self._doubtful = False
        if isinstance(changes, Gap):
            return self._report_gap(changes.reason)
        if not changes:
            there = await self._store.head()
            if there.history != self.head.history or there.epoch < self.head.epoch:
                return self._report_gap(f"history `{there.history}` at {there.epoch} after {self.head}")
        return changes

    def follow(self, change: Change) -> None:
        """Record that ``change`` was applied."""
        self.head = Head(change.history, change.epoch)
        self._history_check.follow(change)

    @staticmethod
    def _report_gap(reason: str) -> None:
        log.warning("reading everything again: %s", reason)
