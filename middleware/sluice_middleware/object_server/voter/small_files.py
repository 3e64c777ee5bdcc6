"""The small files of a voter, each replaced as a whole: version, CRC-32 and a JSON object in one line.

A file that cannot be read, or that is damaged, is never taken for a missing one: a voter that forgot a promise would
make others lose states that were acknowledged.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift.diskfile_api import fsync_dir, makedirs_count

_VERSION: Final = "1"
#: Behind the path of a file: its next content, before it replaces the file.
NEXT: Final = ".next"


class Damaged(SluiceError):
    """A file of the voter cannot be read: the device has no vote for this object."""

    status = 503


def read_fields(path: str) -> dict[str, Any] | None:
    """The fields in a file; None when there is no file.

    :raises Damaged: when it cannot be read, or has other content
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"`{path}` cannot be read: {error}") from error
    version, _, rest = data.partition(b" ")
    checksum, _, line = rest.partition(b" ")
    if version != _VERSION.encode() or checksum != _checksum(line):
        raise Damaged(f"`{path}` is damaged, or of another version than {_VERSION}")
    fields: dict[str, Any] = json.loads(line)
    return fields


def write_fields(path: str, fields: Mapping[str, Any]) -> None:
    """Replace a file; it is on the disk when the call returns.  The caller holds a lock for it.

    :raises OSError: when it cannot be written; the file is the old one then
    """
    line = json.dumps(dict(fields), separators=(",", ":"), sort_keys=True).encode() + b"\n"
    data = b" ".join((_VERSION.encode(), _checksum(line), line))
    folder = os.path.dirname(path)
    created = makedirs_count(folder)
    descriptor = os.open(path + NEXT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)  # in one piece: it is shorter than a page
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(path + NEXT, path)
    for _ in range(created + 1):
        fsync_dir(folder)
        folder = os.path.dirname(folder)


def _checksum(line: bytes) -> bytes:
    return b"%08x" % zlib.crc32(line)
