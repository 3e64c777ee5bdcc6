"""Small secret files that are made once."""

from __future__ import annotations

import os
from pathlib import Path


def ensure_secret(path: Path, content: bytes) -> bytes:
    """The content of the file, which is created with ``content`` when missing; only its owner can read it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return content
