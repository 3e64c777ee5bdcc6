"""Root secrets from a file.

A key file is JSON, readable by its owner only::

    {"active": "2026", "keys": {"2025": "<base64 of 32 bytes>", "2026": "..."}}
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sluice_filters.encryption.keys.ring import KeySourceError, Ring, WatchedKeys, check_key_id

SECRET_SIZE: Final = 32
_LARGEST_FILE: Final = 1 << 20


class KeyFile(WatchedKeys):
    """The keys in a key file."""

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(path, f"key file `{path}`", clock)

    def read(self) -> Ring:
        return parse_ring(read_private(self.path))


def read_private(path: Path) -> bytes:
    """Return the content of a file that only its owner may read.

    :raises KeySourceError: when other users may read it, or it cannot be read
    """
    try:
        # a pipe would block a plain open() without end
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise KeySourceError("not a regular file")
            if mode & 0o077:
                raise KeySourceError(f"readable or writable by others (mode {mode & 0o777:04o}), expected 0600")
            return file.read(_LARGEST_FILE)
    except OSError as error:
        raise KeySourceError(error.strerror or str(error)) from error


def parse_ring(raw: bytes) -> Ring:
    """Return the ring in a key file's bytes.

    :raises KeySourceError: without quoting the content
    """
    try:
        data = json.loads(raw)
    except ValueError:
        raise KeySourceError("not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("keys"), dict) or not isinstance(data.get("active"), str):
        raise KeySourceError('expected `{"active": identifier, "keys": {identifier: base64}}`')
    secrets = {key_id: decode_secret(key_id, value) for key_id, value in data["keys"].items()}
    if data["active"] and data["active"] not in secrets:
        raise KeySourceError(f"active key `{data['active']}` is not among the keys")
    return Ring(data["active"], secrets)


def decode_secret(key_id: str, value: Any) -> bytes:
    """Return a secret from its base64.

    :raises KeySourceError: naming the identifier only
    """
    check_key_id(key_id)
    try:
        secret = base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise KeySourceError(f"key `{key_id}` is not base64") from None
    if len(secret) != SECRET_SIZE:
        raise KeySourceError(f"key `{key_id}` has `{len(secret)}` bytes, expected {SECRET_SIZE}")
    return secret


def render_ring(ring: Ring) -> bytes:
    """Return the bytes of a key file."""
    keys = {key_id: base64.b64encode(secret).decode() for key_id, secret in sorted(ring.secrets.items())}
    return json.dumps({"active": ring.active, "keys": keys}, indent=1).encode() + b"\n"
