"""What lies behind a volume's stack: Cinder's connection, as arguments of nbdkit.

``nbd`` (the driver of Sluice) is an NBD server, ``local`` a path of this machine.  Of every other type os-brick makes a
path, where it has a connector for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import CallerError

#: Types that need no connector.
NBD: Final = "nbd"
LOCAL: Final = "local"


@dataclass(frozen=True, slots=True)
class Source:
    """A plugin of nbdkit with its parameters."""

    arguments: tuple[str, ...]


def open_source(connection: Mapping[str, Any], folder: Path) -> Source:
    """The source that Cinder's connection describes.

    :param connection: ``connection_info``: ``driver_volume_type``, and ``data`` with what that type needs
    :param folder: of the volume, for secrets that nbdkit reads
    :raises CallerError: when the connection is of a type that cannot be used here, or lacks something
    """
    kind, data = str(connection.get("driver_volume_type")), connection.get("data")
    if not isinstance(data, Mapping):
        raise CallerError(f"connection of type `{kind}` has no `data`")
    if kind == NBD:
        return _nbd(data, folder)
    if kind == LOCAL:
        return _local(_text(data, "device_path", kind))
    raise CallerError(f"connections of type `{kind}` cannot be used here, expected {NBD} or {LOCAL}")


def _nbd(data: Mapping[str, Any], folder: Path) -> Source:
    arguments = ["nbd", f"uri={_text(data, 'uri', NBD)}"]
    key = data.get("auth_password")
    if key:
        path = folder / "psk"
        path.touch(mode=0o600)
        path.write_text(f"{_text(data, 'auth_username', NBD)}:{key}\n", encoding="ascii")
        arguments += ["tls=require", f"tls-psk={path}"]
    return Source(tuple(arguments))


def _local(path: str) -> Source:
    if not Path(path).is_absolute():
        raise CallerError(f"`device_path` is `{path}`, expected an absolute path")
    return Source(("file", path))


def _text(data: Mapping[str, Any], name: str, kind: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"connection of type `{kind}` has no `{name}`")
    return value
