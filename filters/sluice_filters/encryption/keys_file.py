"""Root secrets out of a file, and how a process gets its ring of keys.

A key file is JSON, readable by its owner only::

    {"active": "2026", "keys": {"2025": "<base64 of 32 bytes>", "2026": "..."}}

Theory of operation.  A ring looks at its source at most once a second, and at once when a key is
asked for that it does not have.  A source that cannot be read, or holds nonsense, never takes keys
away: the last good ring stays and ``problem`` says what is wrong (it is logged once).  A process
whose source is broken from the start runs, and refuses what needs a key, with that reason.  Neither
problems nor errors ever hold a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from sluice_core.errors import CallerError
from sluice_filters.encryption.keys import KeyRing, MissingKey, NoKeys, is_key_id

SECRET_SIZE: Final = 32
#: Seconds between two looks at the source.
_PATIENCE: Final = 1.0
_LARGEST_FILE: Final = 1 << 20

_log = logging.getLogger(__name__)


class KeyProblem(CallerError):
    """A source of keys that cannot be used; never holds a secret."""


@dataclass(frozen=True, slots=True)
class Ring:
    """Root secrets by identifier, the one for new objects (empty: none), and what kept others out."""

    active: str = ""
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    problem: str = ""


class Source(Protocol):
    """Where a ring comes from; ``retry`` is the least number of seconds between two failing reads."""

    name: str
    retry: float

    def signature(self) -> object:
        """Something cheap that is another whenever ``read`` would answer something else.

        :raises KeyProblem: when there is nothing to read
        """

    def read(self) -> Ring:
        """The keys.

        :raises KeyProblem: with the reason
        """


class WatchedKeys:
    """A ring that follows its source."""

    def __init__(self, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._ring = Ring()
        self._seen: object = None
        self._looked = float("-inf")
        #: What is wrong with the source now; empty when nothing is.
        self.problem = ""

    def active(self) -> str:
        """As of :class:`~sluice_filters.encryption.keys.KeyRing`."""
        self._look(_PATIENCE)
        if not self._ring.active:
            raise MissingKey(self._lacking("no active key"))
        return self._ring.active

    def secret(self, key_id: str) -> bytes:
        """As of :class:`~sluice_filters.encryption.keys.KeyRing`."""
        self._look(_PATIENCE)
        found = self._ring.secrets.get(key_id)
        if found is None:
            self._look(0.0)
            found = self._ring.secrets.get(key_id)
        if found is None:
            raise MissingKey(self._lacking(f"no key `{key_id}`"))
        return found

    def identifiers(self) -> tuple[str, ...]:
        """The keys that are here."""
        self._look(_PATIENCE)
        return tuple(sorted(self._ring.secrets))

    def _lacking(self, what: str) -> str:
        return f"{what} in {self._source.name}" + (f": {self.problem}" if self.problem else "")

    def _look(self, patience: float) -> None:
        """Follow the source, unless it was looked at less than ``patience`` seconds ago."""
        now = self._clock()
        if now - self._looked < (max(patience, self._source.retry) if self.problem else patience):
            return
        self._looked = now
        problem = ""
        try:
            signature = self._source.signature()
            if signature != self._seen or self.problem:
                self._ring = self._source.read()
                self._seen = signature
                problem = self._ring.problem
                _log.info("%s was read, active key `%s`", self._source.name, self._ring.active)
        except KeyProblem as error:
            problem = str(error)
        if problem and problem != self.problem:
            _log.error("%s: %s; the keys read before stay", self._source.name, problem)
        self.problem = problem


class FileSource:
    """A key file."""

    retry = 0.0

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = f"key file `{path}`"

    def signature(self) -> object:
        """Of the file that has the name now: a rewrite by rename is another inode."""
        return file_signature(self.path)

    def read(self) -> Ring:
        """The ring in the file."""
        return parse_ring(read_private(self.path))


class KeyFile(WatchedKeys):
    """The keys in a key file; nothing is read before the first one is wanted."""

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(FileSource(path), clock)


def file_signature(path: Path) -> tuple[int, ...]:
    """Something that changes when the file does.

    :raises KeyProblem: when there is no such file
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise KeyProblem(error.strerror or str(error)) from error
    return found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode


def read_private(path: Path) -> bytes:
    """What stands in a file that nobody but its owner may read.

    :raises KeyProblem: when others may, or nobody can
    """
    try:
        # a pipe would keep a plain open() waiting for ever
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise KeyProblem("not a regular file")
            if mode & 0o077:
                raise KeyProblem(f"readable or writable by others (mode {mode & 0o777:04o}), expected 0600")
            return file.read(_LARGEST_FILE)
    except OSError as error:
        raise KeyProblem(error.strerror or str(error)) from error


def parse_ring(raw: bytes) -> Ring:
    """The ring that a key file's bytes describe.

    :raises KeyProblem: without a word of what stands in it
    """
    try:
        data = json.loads(raw)
    except ValueError:
        raise KeyProblem("not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("keys"), dict) or not isinstance(data.get("active"), str):
        raise KeyProblem('expected `{"active": identifier, "keys": {identifier: base64}}`')
    secrets = {key_id: decode_secret(key_id, value) for key_id, value in data["keys"].items()}
    if data["active"] and data["active"] not in secrets:
        raise KeyProblem(f"active key `{data['active']}` is not among the keys")
    return Ring(data["active"], secrets)


def decode_secret(key_id: str, value: Any) -> bytes:
    """A secret out of its base64.

    :raises KeyProblem: naming the identifier only
    """
    if not is_key_id(key_id):
        raise KeyProblem(f"`{key_id}` is no identifier: expected up to 64 letters, digits, `.`, `_` or `-`")
    try:
        secret = base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise KeyProblem(f"key `{key_id}` is not base64") from None
    if len(secret) != SECRET_SIZE:
        raise KeyProblem(f"key `{key_id}` has `{len(secret)}` bytes, expected {SECRET_SIZE}")
    return secret


def render_ring(ring: Ring) -> bytes:
    """The bytes of a key file."""
    keys = {key_id: base64.b64encode(secret).decode() for key_id, secret in sorted(ring.secrets.items())}
    return json.dumps({"active": ring.active, "keys": keys}, indent=1).encode() + b"\n"


def open_keys(options: Mapping[str, str], prefix: str = "") -> KeyRing:
    """The ring that a host's options name: ``key_file``, ``key_manager_conf`` (castellan), or none.

    :param prefix: before the options' names (``sluice_`` on storage nodes)
    :raises CallerError: when both are given, or castellan is wanted and not installed
    """
    path, conf = options.get(f"{prefix}key_file"), options.get(f"{prefix}key_manager_conf")
    if path and conf:
        raise CallerError(f"options `{prefix}key_file` and `{prefix}key_manager_conf`: expected one of them")
    if not path and not conf:
        return NoKeys()
    ring = KeyFile(path) if path else _castellan(str(conf), prefix)
    ring.identifiers()  # so that what is wrong is in the log at start
    return ring


def _castellan(conf: str, prefix: str) -> WatchedKeys:
    try:
        from sluice_filters.encryption.keys_castellan import CastellanKeys
    except ImportError as error:
        raise CallerError(f"option `{prefix}key_manager_conf` needs the extra sluice[barbican]: {error}") from error
    return CastellanKeys(conf)
