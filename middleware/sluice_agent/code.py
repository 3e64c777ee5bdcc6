"""Brings the code of registered filters from Swift to this node.

One task: whenever the snapshot's uploads change it looks what is missing and fetches it, one file
after the other; what cannot be had is tried again with growing pauses, and reported.  Workers find
the files in the folder by their digest and verify them once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sluice_core.code_shelf import CodeShelf
from sluice_core.code_store import CodeStore
from sluice_core.errors import SluiceError
from sluice_core.messages import Upload

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class CodeFetcher:
    """``uploads`` is asked for what this node should have; ``told`` is called when something came or failed."""

    def __init__(
        self,
        shelf: CodeShelf | None,
        store: CodeStore,
        uploads: Callable[[], Iterable[Upload]],
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self._shelf = shelf
        self._store = store
        self._uploads = uploads
        self._told = told
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """``upload/<keyword>`` → why its code is not here."""
        return self._problems

    async def run(self) -> None:
        """Fetch until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            await self.fetch()
            if self._problems:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE
                await asyncio.sleep(_LOOK_EVERY)

    async def fetch(self) -> None:
        """Fetch everything that is missing now."""
        problems: dict[str, str] = {}
        came = False
        for upload in self._uploads():
            for sha256 in upload.files() if upload.sha256 else ():
                try:
                    if not self._store.has(sha256):
                        await asyncio.to_thread(self._bring, sha256)
                        log.info("fetched code `%s` of filter `%s`", sha256, upload.keyword)
                        came = True
                except (SluiceError, OSError) as error:
                    problems[f"upload/{upload.keyword}"] = f"code of filter `{upload.keyword}`: {error}"
        changed = problems != self._problems
        for name, reason in problems.items():
            if self._problems.get(name) != reason:
                log.warning("%s: %s", name, reason)
        self._problems = problems
        if came or changed:
            self._told()

    def _bring(self, sha256: str) -> None:
        if self._shelf is None:
            raise SluiceError(
                "this agent was given no place for code, its options `code_auth_url` and following name one"
            )
        self._store.add(self._shelf.get(sha256), sha256)
