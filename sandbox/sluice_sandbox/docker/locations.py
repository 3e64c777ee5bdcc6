"""Where the isolated environments keep things on this machine, unless told otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """For what can be made again: ``$SLUICE_CACHE``, else the user's cache folder."""
    given = os.environ.get("SLUICE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sluice")


def state_folder() -> Path:
    """For an engine and its containers: ``/var/lib/sluice`` for root, else in the cache folder."""
    return Path("/var/lib/sluice") if os.geteuid() == 0 else cache_folder() / "state"
