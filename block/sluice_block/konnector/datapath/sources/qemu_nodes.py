"""Connections as block nodes of QEMU, as of ``blockdev-add``; the last node is the volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from sluice_block.konnector.datapath.qemu_daemon import nbd_client
from sluice_block.konnector.datapath.sources.fields import text_field, write_secret
from sluice_core.errors import CallerError

_VOLUME: Final = "source"
_NBD_PORT: Final = 10809
#: What drivers of file systems say of their files.
_FORMATS: Final = ("raw", "qcow2")

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UnixServer:
    """An NBD server on a unix socket of this machine."""

    path: str
    export: str


def unix_server(data: Mapping[str, Any]) -> UnixServer | None:
    """The server of a connection, if it is one on a unix socket that wants no key.

    :raises CallerError: when the connection has no ``uri``
    """
    address = urlsplit(text_field(data, "uri", "nbd"))
    path = parse_qs(address.query).get("socket", [""])[0]
    if address.scheme != "nbd+unix" or not path or data.get("auth_password"):
        return None
    return UnixServer(path, unquote(address.path.removeprefix("/")))


def nbd_nodes(data: Mapping[str, Any], tls: Path) -> tuple[list[Node], list[str]]:
    """The node of an NBD server, and the objects that it needs.

    :param tls: folder for the key of the attachment, which QEMU reads there
    :raises CallerError: when something is missing, or TLS is
    """
    address = urlsplit(text_field(data, "uri", "nbd"))
    options: Node = {"export": unquote(address.path.removeprefix("/"))}
    key = data.get("auth_password")
    objects = [_write_key(tls, text_field(data, "auth_username", "nbd"), str(key))] if key else []
    if objects:
        options["tls-creds"] = "tls"
    if address.scheme == "nbd+unix":
        path = parse_qs(address.query).get("socket", [""])[0]
        return [nbd_client(_VOLUME, {"type": "unix", "path": path}, **options)], objects
    if address.scheme != "nbds" or not address.hostname or not key:
        raise CallerError(f"`uri` is `{address.scheme}://…`, expected nbd+unix, or nbds with a key: TCP only with TLS")
    server = {"type": "inet", "host": address.hostname, "port": str(address.port or _NBD_PORT)}
    return [nbd_client(_VOLUME, server, **options)], objects


def file_nodes(file: Path, kind: str) -> list[Node]:
    """The nodes of a file.

    :param kind: its format, which is never guessed: a user could write what looks like another one
    :raises CallerError: when it is another format
    """
    if kind not in _FORMATS:
        raise CallerError(f"`format` is `{kind}`, expected {' or '.join(_FORMATS)}")
    bottom = {"driver": "file", "node-name": "file", "filename": str(file), "discard": "unmap"}
    return [bottom, {"driver": kind, "node-name": _VOLUME, "file": "file", "discard": "unmap"}]


def _write_key(folder: Path, identity: str, key: str) -> str:
    """Write the key where QEMU reads it, and return the object that does."""
    folder.mkdir(mode=0o700, exist_ok=True)
    write_secret(folder / "keys.psk", f"{identity}:{key}\n")
    given = {"id": "tls", "dir": str(folder), "endpoint": "client", "username": identity}
    return ",".join(["tls-creds-psk", *(f"{name}={value.replace(',', ',,')}" for name, value in given.items())])
