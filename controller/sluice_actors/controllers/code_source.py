"""Where an actor host gets the code of controllers from: Swift, by a folder of its own."""

from __future__ import annotations

import asyncio

from sluice_code.code_store import CodeStore
from sluice_code.swift_code_store import SwiftCodeStore
from sluice_core.errors import SluiceError


class CodeSource:
    """Code by its SHA-256, verified whenever it is read.

    :param shelf: None when the host was given no place for code
    """

    def __init__(self, shelf: SwiftCodeStore | None, store: CodeStore) -> None:
        self._shelf = shelf
        self._store = store

    async def get(self, sha256: str) -> bytes:
        """The code; waits for Swift in a thread.

        :raises SluiceError: when it cannot be had
        """
        return await asyncio.to_thread(self._get, sha256)

    def _get(self, sha256: str) -> bytes:
        try:
            if not self._store.has(sha256):
                if self._shelf is None:
                    raise SluiceError(
                        "this actor host was given no place for code, its options `code_auth_url` … name one"
                    )
                with self._shelf.get(sha256) as pieces:
                    self._store.add(pieces, sha256)
            return self._store.read(sha256)
        except OSError as error:
            raise SluiceError(f"folder `{self._store.folder}`: {error.strerror}") from error
