"""Fields of connections."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice_core.errors import CallerError, PeerError


def text_field(data: Mapping[str, Any], name: str, kind: str) -> str:
    """The text ``name`` of a connection of type ``kind``.

    :raises CallerError: when there is none
    """
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"connection of type `{kind}` has no `{name}`")
    return value


def write_secret(path: Path, text: str) -> Path:
    """Write a file that its owner alone reads.

    :raises PeerError: when it cannot be written
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise PeerError(f"`{path}` cannot be written: {error}") from error
    return path
