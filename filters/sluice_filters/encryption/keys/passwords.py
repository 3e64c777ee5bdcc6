"""Passwords for other systems, from where root secrets come from: a file, or a key manager through castellan.

A password file is JSON, readable by its owner only::

    {"passwords": {"backup-site": "..."}}

A key manager holds them as passphrases, and its configuration names them as that of keys does, without an active one.
Both are followed while the process runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sluice_core.errors import CallerError, PeerError
from sluice_filters.encryption.keys.key_file import read_private
from sluice_filters.encryption.keys.ring import KeySourceError, Ring, WatchedKeys, check_key_id
from sluice_filters.key_ring import MissingKey

#: Gives the password of an identifier; raises ``PeerError`` when it is not to be had.
Passwords = Callable[[str], str]


class PasswordFile(WatchedKeys):
    """The passwords in a file."""

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(path, f"password file `{path}`", clock)

    def read(self) -> Ring:
        try:
            data = json.loads(read_private(self.path))
        except ValueError:
            raise KeySourceError("not JSON") from None
        found = data.get("passwords") if isinstance(data, dict) else None
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise KeySourceError('expected `{"passwords": {identifier: text}}`')
        for key_id in found:
            check_key_id(key_id)
        return Ring("", {key_id: one.encode() for key_id, one in found.items()})


def open_passwords(options: Mapping[str, Any], prefix: str) -> Passwords:
    """The passwords that a host's options name: ``password_file``, ``key_manager_conf`` (castellan), or none.

    :param prefix: before the options' names
    :raises CallerError: when both are given, or castellan is wanted and not installed
    """
    path, conf = options.get(f"{prefix}password_file"), options.get(f"{prefix}key_manager_conf")
    if path and conf:
        raise CallerError(f"options `{prefix}password_file` and `{prefix}key_manager_conf`: expected one of them")
    ring = PasswordFile(path) if path else _castellan(str(conf), prefix) if conf else None

    def password(key_id: str) -> str:
        if ring is None:
            names = f"`{prefix}password_file` nor `{prefix}key_manager_conf`"
            raise PeerError(f"password `{key_id}` is not to be had: neither option {names} is set")
        try:
            return ring.secret(key_id).decode()
        except (MissingKey, UnicodeDecodeError) as error:
            reason = error if isinstance(error, MissingKey) else "it is no text"
            raise PeerError(f"password `{key_id}` is not to be had: {reason}") from None

    return password


def _castellan(conf: str, prefix: str) -> WatchedKeys:
    try:
        from sluice_filters.encryption.keys.castellan_passwords import CastellanPasswords
    except ImportError as error:
        raise CallerError(f"option `{prefix}key_manager_conf` needs the extra sluice[barbican]: {error}") from error
    return CastellanPasswords(conf)
