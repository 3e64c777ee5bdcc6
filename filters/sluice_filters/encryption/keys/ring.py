"""Rings of root secrets that follow a source: a key file, or a key manager that a file names.

Theory of operation.  A ring checks its file at most once a second, and at once when a requested key is missing; it
reads its source when the file changed, and after a failure.  A source that cannot be read, or is invalid, never removes
keys: the last good ring stays and ``problem`` has the reason (it is logged once).  A process whose source is invalid
from the start runs, and refuses requests that need a key, with that reason.  Neither problems nor errors ever hold a
secret.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from sluice_core.errors import CallerError
from sluice_filters.key_ring import MissingKey, is_key_id

#: Seconds between two checks of the source.
_INTERVAL: Final = 1.0

_log = logging.getLogger(__name__)


class KeySourceError(CallerError):
    """A source of keys that cannot be used; never holds a secret."""


def check_key_id(key_id: str) -> None:
    """
    :raises KeySourceError: when ``key_id`` cannot name a key
    """
    if not is_key_id(key_id):
        raise KeySourceError(f"`{key_id}` is no identifier: expected up to 64 letters, digits, `.`, `_` or `-`")


@dataclass(frozen=True, slots=True)
class Ring:
    """Root secrets by identifier, the one for new objects (empty: none), and the problems of missing ones."""

    active: str = ""
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    problem: str = ""


class WatchedKeys:
    """A ring that follows its source; it is read at the first request for a key."""

    #: Least number of seconds between two failing reads.
    retry: ClassVar[float] = 0.0

    def __init__(self, path: str | Path, name: str, clock: Callable[[], float]) -> None:
        """
        :param name: the source's name in errors
        """
        self.path = Path(path)
        self.name = name
        self._clock = clock
        self._ring = Ring()
        self._seen: object = None
        self._checked_at = float("-inf")
        #: The present problem of the source; empty when there is none.
        self.problem = ""

    def read(self) -> Ring:
        """Return the keys of the source at present.

        :raises KeySourceError: with the reason
        """
        raise NotImplementedError

    def active(self) -> str:
        """As of :class:`~sluice_filters.key_ring.KeyRing`."""
        self._refresh(_INTERVAL)
        if not self._ring.active:
            raise MissingKey(self._explain("no active key"))
        return self._ring.active

    def secret(self, key_id: str) -> bytes:
        """As of :class:`~sluice_filters.key_ring.KeyRing`."""
        self._refresh(_INTERVAL)
        secret = self._ring.secrets.get(key_id)
        if secret is None:
            self._refresh(0.0)
            secret = self._ring.secrets.get(key_id)
        if secret is None:
            raise MissingKey(self._explain(f"no key `{key_id}`"))
        return secret

    def identifiers(self) -> tuple[str, ...]:
        """The identifiers of the present keys."""
        self._refresh(_INTERVAL)
        return tuple(sorted(self._ring.secrets))

    def _explain(self, what: str) -> str:
        return f"{what} in {self.name}" + (f": {self.problem}" if self.problem else "")

    def _refresh(self, max_age: float) -> None:
        """Read the source if it has changed, unless it was checked less than ``max_age`` seconds ago."""
        now = self._clock()
        if now - self._checked_at < (max(max_age, self.retry) if self.problem else max_age):
            return
        self._checked_at = now
        problem = ""
        try:
            signature = _signature(self.path)
            if signature != self._seen or self.problem:
                self._ring = self.read()
                self._seen = signature
                problem = self._ring.problem
                _log.info("%s was read, active key `%s`", self.name, self._ring.active)
        except KeySourceError as error:
            problem = str(error)
        if problem and problem != self.problem:
            _log.error("%s: %s; the keys read before stay", self.name, problem)
        self.problem = problem


def _signature(path: Path) -> tuple[int, ...]:
    """Return a value that changes with the file of that name: a rewrite by rename is another inode.

    :raises KeySourceError: when the file is missing
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise KeySourceError(error.strerror or str(error)) from error
    return status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode
