"""Small secret files that are made once."""

from __future__ import annotations

import os
from pathlib import Path


def kept(path: Path, content: bytes) -> bytes:
    """What the file holds; ``content`` when there was none.  Readable by its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return content
