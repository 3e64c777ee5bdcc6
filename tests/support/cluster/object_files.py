"""The files of one object on the object servers' disks: reads and damages them, and downloads the object."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from swift.common.exceptions import DiskFileError
from swift.obj.diskfile import read_metadata, write_metadata

from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.disks import data_files

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Download:
    """A response; ``whole`` is False when the transfer was cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool


def object_files(devices: Iterable[Path], name: str) -> list[Path]:
    """The newest data file on each device of the object ``account/container/object``."""
    return [path for path in data_files(devices) if file_metadata(path).get("name") == f"/{name}"]


def quarantined(devices: Iterable[Path]) -> list[Path]:
    """The folders of objects that auditors and object servers have quarantined on ``devices``."""
    return sorted(path for device in devices for path in device.glob("quarantined/*/*"))


def file_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a file; empty when the file is missing or they are damaged."""
    try:
        found: dict[str, Any] = read_metadata(str(path))
    except DiskFileError:
        return {}
    return found


def flip_bit(path: Path, offset: int) -> None:
    """Change one bit in place; a negative ``offset`` counts from the end."""
    with open(path, "r+b") as file:
        place = file.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def replace_content(path: Path, content: bytes, known: Mapping[str, Any] | None = None) -> None:
    """Replace the bytes of a file in place; with ``known`` other metadata as well, under a right checksum."""
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(content)
    if known is not None:
        write_metadata(str(path), dict(known))


def download(client: SwiftHttp, path: str, size: int | None = None, **headers: str) -> Download:
    """GET ``container/object`` on a connection of its own, to the end, to a cut, or to ``size`` bytes."""
    connection = http.client.HTTPConnection(client.address, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body, whole = bytearray(), True
    try:
        connection.request("GET", f"{client.account}/{quote(path)}", headers={"X-Auth-Token": client.token, **named})
        with connection.getresponse() as answer:
            try:
                while (size is None or len(body) < size) and (piece := answer.read1(_PIECE)):
                    body += piece
            except (OSError, http.client.HTTPException):
                whole = False
        found = {name.lower(): value for name, value in answer.getheaders()}
        if size is None and len(body) < int(found.get("content-length", 0)):
            whole = False
        return Download(answer.status, found, bytes(body), whole)
    finally:
        connection.close()
