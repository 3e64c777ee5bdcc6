"""Volumes and snapshots as sparse raw files in one folder.

A file gets its name when it is complete: it is made under another name, synchronised and renamed.  So what a crash
leaves is never taken for a volume, and every operation may be repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sluice_block.cinder_nbd.pools import Pool

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
#: Runs a program to its end; an OSError says why it failed, with ENOSPC for a full file system.
Run = Callable[[Sequence[str]], None]


class PoolFull(Exception):
    """There is no space for a copy; ``str`` says how much there is."""


class VolumeFiles:
    """The files of ``pool``; ``run`` copies and synchronises them."""

    def __init__(self, pool: Pool, run: Run) -> None:
        self._pool = pool
        self._run = run

    def path(self, name: str) -> Path:
        """Where the volume or snapshot ``name`` is.

        :raises ValueError: for a name that is none of a file in this folder
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"a volume is called `{name}`, expected letters, digits, `_`, `.` and `-`")
        return self._pool.folder / name

    def create(self, name: str, size: int) -> None:
        """A volume of ``size`` bytes that reads as zeros."""
        with self._fresh(name) as fresh:
            os.truncate(fresh, size)

    def copy(self, source: Path, name: str, size: int | None = None) -> None:
        """``name`` is a copy of the file ``source``, extended to ``size`` bytes.

        :raises PoolFull: when what ``source`` occupies does not fit
        """
        needed, free = source.stat().st_blocks * 512, self._pool.usage().free
        if needed > free:
            raise PoolFull(f"pool `{self._pool.name}` has {free} bytes free, expected {needed} for `{name}`")
        with self._fresh(name) as fresh:
            self._run(["cp", "--reflink=auto", "--sparse=always", "--", str(source), str(fresh)])
            if size is not None and size > fresh.stat().st_size:
                os.truncate(fresh, size)

    def extend(self, name: str, size: int) -> None:
        """Make ``name`` at least ``size`` bytes long; it is never cut."""
        path = self.path(name)
        if path.stat().st_size < size:
            os.truncate(path, size)

    def delete(self, name: str) -> None:
        """Remove ``name`` and what is left of its making; harmless when it is gone."""
        path = self.path(name)
        self._unfinished(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    @staticmethod
    def _unfinished(path: Path) -> Path:
        return path.with_name(f".{path.name}.new")

    @contextlib.contextmanager
    def _fresh(self, name: str) -> Iterator[Path]:
        """An empty file that becomes ``name`` when the block succeeds."""
        path = self.path(name)
        fresh = self._unfinished(path)
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            yield fresh
            self._run(["sync", "--", str(fresh)])
            fresh.replace(path)
            self._run(["sync", "--", str(path.parent)])
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                fresh.unlink()
            raise
