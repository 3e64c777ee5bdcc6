"""Pools of one Cinder back end: folders with a capacity and with capabilities, each from one option line.

A line is a name and ``key=value`` pairs: ``fast folder=ssd capacity=100 sluice:resiliency=none sluice:fabric=nbd``.

Volumes and snapshots are sparse raw files in a pool's folder.  A file receives its name when it is complete: it is made
under another name, synchronised and renamed.  So an incomplete file after a crash is never taken for a volume, and
every operation may be repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

GIB: Final = 1 << 30
#: Bytes in a block of ``st_blocks``, on every file system.
_BLOCK: Final = 512
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(:[A-Za-z][A-Za-z0-9_.-]*)?")
#: Keys of a pool's report that its measurements and the driver set.
RESERVED: Final = frozenset(
    {
        "pool_name",
        "total_capacity_gb",
        "free_capacity_gb",
        "provisioned_capacity_gb",
        "allocated_capacity_gb",
        "max_over_subscription_ratio",
        "reserved_percentage",
        "thin_provisioning_support",
        "thick_provisioning_support",
        "QoS_support",
        "multiattach",
        "online_extend_support",
    }
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes of a pool: its size, its free space, and the total size of its volumes and snapshots."""

    total: int
    free: int
    provisioned: int


@dataclass(frozen=True, slots=True)
class Pool:
    """A folder of volumes; without a ``capacity`` in bytes it may fill its file system."""

    name: str
    folder: Path
    capacity: int | None = None
    capabilities: Mapping[str, str] = field(default_factory=dict)

    def usage(self) -> Usage:
        """Return the present usage of the folder.

        :raises OSError: when the folder cannot be read
        """
        occupied = provisioned = 0
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted meanwhile
                    continue
                if entry.is_file(follow_symlinks=False):
                    occupied += stat.st_blocks * _BLOCK
                    provisioned += stat.st_size
        system = os.statvfs(self.folder)
        free = system.f_bavail * system.f_frsize
        if self.capacity is None:
            return Usage(system.f_blocks * system.f_frsize, free, provisioned)
        return Usage(self.capacity, max(0, min(free, self.capacity - occupied)), provisioned)

    def reported_capabilities(self) -> dict[str, Any]:
        """Return the capabilities for Cinder's scheduler, which finds ``a:b`` of a type's extra specs only as
        ``[a][b]``.
        """
        report: dict[str, Any] = dict(self.capabilities)
        for key, value in self.capabilities.items():
            scope, colon, name = key.partition(":")
            if colon:
                report.setdefault(scope, {})[name] = value
        return report


def parse_pools(lines: Iterable[str], root: Path, default: str) -> dict[str, Pool]:
    """Return name → pool, from the option's lines; without a line one pool called ``default``, which is ``root``
    itself.

    :param root: the folder in which the pools' folders are
    :raises ValueError: naming a line that is invalid or repeated
    """
    pools: dict[str, Pool] = {}
    for line in lines:
        pool = _parse_pool(line, root)
        if pool.name in pools:
            raise ValueError(f"pool `{pool.name}` is there twice")
        shared = next((one.name for one in pools.values() if one.folder == pool.folder), None)
        if shared is not None:
            raise ValueError(f"pools `{shared}` and `{pool.name}` share the folder `{pool.folder}`")
        pools[pool.name] = pool
    return pools or {default: Pool(default, root)}


def _parse_pool(line: str, root: Path) -> Pool:
    name, *words = line.split() or [""]
    if not _NAME.fullmatch(name):
        raise ValueError(f"pool is called `{name}`, expected letters, digits, `_`, `.` and `-`")
    pairs = dict(_pairs(name, words))
    folder = pairs.pop("folder", name)
    if not _NAME.fullmatch(folder):
        raise ValueError(f"folder of pool `{name}` is `{folder}`, expected the name of one folder in `{root}`")
    capacity = pairs.pop("capacity", None)
    if capacity is not None and (not capacity.isdecimal() or int(capacity) == 0):
        raise ValueError(f"capacity of pool `{name}` is `{capacity}`, expected a number of GiB")
    return Pool(name, root / folder, None if capacity is None else int(capacity) * GIB, pairs)


def _pairs(pool: str, words: Iterable[str]) -> Iterator[tuple[str, str]]:
    known = set()
    for word in words:
        key, _, value = word.partition("=")
        if not value or not _KEY.fullmatch(key):
            raise ValueError(f"pool `{pool}` has `{word}`, expected key=value")
        if key in RESERVED:
            raise ValueError(f"pool `{pool}` has `{key}`, which the driver itself reports")
        if key in known:
            raise ValueError(f"pool `{pool}` has `{key}` twice")
        known.add(key)
        yield key, value


_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
#: Runs a program to its end; raises OSError with the reason, with ENOSPC for a full file system.
Run = Callable[[Sequence[str]], None]


class PoolFull(Exception):
    """There is no space for a copy; ``str`` has the free space."""


class VolumeFiles:
    """The files of ``pool``; ``run`` copies and synchronises them."""

    def __init__(self, pool: Pool, run: Run) -> None:
        self._pool = pool
        self._run = run

    def path(self, name: str) -> Path:
        """The path of the volume or snapshot ``name``.

        :raises ValueError: for a name that is not that of a file in this folder
        """
        if not _FILE_NAME.fullmatch(name):
            raise ValueError(f"a volume is called `{name}`, expected letters, digits, `_`, `.` and `-`")
        return self._pool.folder / name

    def create(self, name: str, size: int) -> None:
        """Create a volume of ``size`` bytes that reads as zeros."""
        with self._fresh(name) as fresh:
            os.truncate(fresh, size)

    def copy(self, source: Path, name: str, size: int | None = None) -> None:
        """Copy the file ``source`` to ``name``, extended to ``size`` bytes.

        :raises PoolFull: when the allocated bytes of ``source`` do not fit
        """
        needed, free = source.stat().st_blocks * 512, self._pool.usage().free
        if needed > free:
            raise PoolFull(f"pool `{self._pool.name}` has {free} bytes free, expected {needed} for `{name}`")
        with self._fresh(name) as fresh:
            self._run(["cp", "--reflink=auto", "--sparse=always", "--", str(source), str(fresh)])
            if size is not None and size > fresh.stat().st_size:
                os.truncate(fresh, size)

    def extend(self, name: str, size: int) -> None:
        """Make ``name`` at least ``size`` bytes long; it is never truncated."""
        path = self.path(name)
        if path.stat().st_size < size:
            os.truncate(path, size)

    def delete(self, name: str) -> None:
        """Remove ``name`` and temporary files of its creation; do nothing when they do not exist."""
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
