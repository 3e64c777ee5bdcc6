"""The sources of root secrets and of passwords for other systems, from the options of the host.

Both come from a file, or from a key manager through castellan, and are read again while the process runs.  A password
file is JSON, readable by its owner only::

    {"passwords": {"backup-site": "..."}}

A key manager holds passwords as passphrases, and its configuration lists them like keys, without an active one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sluice_core.errors import CallerError, PeerError
from sluice_filters.encryption.keys.key_file import KeyFile, read_private
from sluice_filters.encryption.keys.ring import KeySourceError, Ring, WatchedKeys, check_key_id
from sluice_filters.key_ring import KeyRing, MissingKey, NoKeys

#: Returns the password of an identifier; raises ``PeerError`` when it is not available.
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
        passwords = data.get("passwords") if isinstance(data, dict) else None
        if not isinstance(passwords, dict) or not all(isinstance(one, str) for one in passwords.values()):
            raise KeySourceError('expected `{"passwords": {identifier: text}}`')
        for key_id in passwords:
            check_key_id(key_id)
        return Ring("", {key_id: one.encode() for key_id, one in passwords.items()})


def open_keys(options: Mapping[str, Any], prefix: str = "") -> KeyRing:
    """Return the ring of a host's options: ``key_file``, ``key_manager_conf`` (castellan), or none.

    :param prefix: before the options' names (``sluice_`` on storage nodes)
    :raises CallerError: when both are given, or castellan is configured and not installed
    """
    ring = _open_source(options, prefix)
    if ring is None:
        return NoKeys()
    ring.identifiers()  # so that problems are logged at start
    return ring


def open_passwords(options: Mapping[str, Any], prefix: str) -> Passwords:
    """Return the passwords of a host's options: ``password_file``, ``key_manager_conf`` (castellan), or none.

    :param prefix: before the options' names
    :raises CallerError: when both are given, or castellan is configured and not installed
    """
    ring = _open_source(options, prefix, passwords=True)

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


def _open_source(options: Mapping[str, Any], prefix: str, passwords: bool = False) -> WatchedKeys | None:
    """Return the keys or passwords of the options; None when the options name none."""
    file_option, conf_option = f"{prefix}{'password' if passwords else 'key'}_file", f"{prefix}key_manager_conf"
    path, conf = options.get(file_option), options.get(conf_option)
    if path and conf:
        raise CallerError(f"options `{file_option}` and `{conf_option}`: expected one of them")
    if path:
        return PasswordFile(path) if passwords else KeyFile(path)
    if not conf:
        return None
    try:
        from sluice_filters.encryption.keys.castellan import CastellanKeys, CastellanPasswords
    except ImportError as error:
        raise CallerError(f"option `{conf_option}` needs the extra openstack-sluice[barbican]: {error}") from error
    return CastellanPasswords(str(conf)) if passwords else CastellanKeys(str(conf))
