"""How a process gets its ring of root secrets: by the options of its host."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.errors import CallerError
from sluice_filters.encryption.keys.key_file import KeyFile
from sluice_filters.encryption.keys.ring import WatchedKeys
from sluice_filters.key_ring import KeyRing, NoKeys


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
        from sluice_filters.encryption.keys.castellan import CastellanKeys
    except ImportError as error:
        raise CallerError(f"option `{prefix}key_manager_conf` needs the extra sluice[barbican]: {error}") from error
    return CastellanKeys(conf)
