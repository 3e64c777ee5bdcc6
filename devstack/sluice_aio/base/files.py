"""Files of a cluster: secrets that are generated once, and sections of configurations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

Options = Mapping[str, str]


def ensure_secret(path: Path, content: bytes) -> bytes:
    """The content of the file; creates it with ``content`` if it is missing.  Only its owner can read it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return content


def section(name: str, options: Options) -> str:
    """One section of an ini file."""
    return "\n".join([f"[{name}]", *(f"{option} = {value}" for option, value in options.items()), ""])
