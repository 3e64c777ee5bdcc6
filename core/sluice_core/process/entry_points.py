"""The entry points of installed distributions, each group read once per process.

``importlib.metadata.entry_points`` parses the metadata of every distribution at each call, which takes tens of
milliseconds where 200 are installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points


def installed_entry_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of ``group`` on ``sys.path``, with those of a package that was installed meanwhile."""
    return _read(group, tuple((folder, _changed(folder)) for folder in sys.path))


@lru_cache(maxsize=32)
def _read(group: str, path: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    return tuple(entry_points(group=group))


def _changed(folder: str) -> int:
    """Return when an entry of ``folder`` was last made or removed (ns since 1970), 0 without such a folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0
