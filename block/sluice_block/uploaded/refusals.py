"""Revisions of uploaded filters that failed on this node, in a file: they are not used again, newer ones are tried."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message

#: The name of the file.
REFUSALS: Final = "refused-filters.json"


@dataclass(frozen=True, slots=True)
class Refusal(Message):
    """One revision, known by its digest, and why it is not used; ``at`` in unix seconds."""

    sha256: str
    keyword: str
    revision: int
    reason: str
    volume: str
    at: float


@dataclass(frozen=True, slots=True)
class _RefusalList(Message):
    refused: tuple[Refusal, ...] = ()

    nested: ClassVar[Mapping[str, type[Message]]] = {"refused": Refusal}


@dataclass(frozen=True)
class Refusals:
    """The refusals, in ``file``; threads may share it."""

    file: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reason(self, sha256: str) -> str:
        """Why this code is not used here; empty when it may be.

        :raises PeerError: when the file cannot be read
        """
        return next((one.reason for one in self._read().refused if one.sha256 == sha256), "")

    def add(self, keyword: str, revision: int, sha256: str, reason: str, volume: str) -> None:
        """Refuse this code from now on; it is on the disk when this returns.

        :raises PeerError: when it cannot be written
        """
        with self._lock:
            known = self._read()
            fresh = Refusal(sha256, keyword, revision, reason, volume, time.time())
            others = tuple(one for one in known.refused if one.sha256 != sha256)
            self._write(replace(known, refused=(*others, fresh)))

    def _read(self) -> _RefusalList:
        try:
            return _RefusalList.decode(self.file.read_bytes())
        except FileNotFoundError:
            return _RefusalList()
        except (OSError, DecodeError) as error:
            raise PeerError(f"`{self.file}` cannot be read, it names the filters that failed here: {error}") from error

    def _write(self, known: _RefusalList) -> None:
        temporary = self.file.with_name(self.file.name + ".new")
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(known.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.file)
        except OSError as error:
            raise PeerError(f"`{self.file}` cannot be written: {error}") from error
