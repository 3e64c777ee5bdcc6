"""Files of the isolated environments: their folders, atomic creation of folders, and locks.

Several processes of a node may create the same folder at once.
"""

from __future__ import annotations

import fcntl
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

from sluice_sandbox.waiting import pause

_LOCK_POLL: Final = 0.01


@contextmanager
def create_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder to be filled, which becomes ``target`` at the end of the block.

    When another process was faster, ``target`` is that process' folder.  When the block fails, the folder is removed.
    """
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as temporary:
        made = Path(temporary, "made")
        made.mkdir()
        yield made
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise


@contextmanager
def file_lock(path: Path, patience: float = math.inf) -> Iterator[None]:
    """Hold a lock for one process and one green thread.

    :raises TimeoutError: when the lock is not free within ``patience`` seconds
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() > deadline:
                    raise TimeoutError(f"`{path.name}` is held for more than {patience:g} s") from None
                pause(_LOCK_POLL)
        yield
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """The folder of rebuildable files: ``$SLUICE_CACHE``, else the user's cache folder."""
    given = os.environ.get("SLUICE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sluice")


def state_folder() -> Path:
    """The folder of an engine and its containers: ``/var/lib/sluice`` for root, else in the cache folder."""
    return Path("/var/lib/sluice") if os.geteuid() == 0 else cache_folder() / "state"
