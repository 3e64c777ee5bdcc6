"""Pools of one Cinder back end: folders with a capacity and with capabilities, as one option line each says.

A line is a name and ``key=value`` pairs: ``fast folder=ssd capacity=100 sluice:resiliency=none sluice:fabric=nbd``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

GIB: Final = 1 << 30
#: Bytes in a block of ``st_blocks``, on every file system.
_BLOCK: Final = 512
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(:[A-Za-z][A-Za-z0-9_.-]*)?")
#: Keys of what a pool reports that its measurements and the driver decide.
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
    """Bytes of a pool: its size, what is free, and the sizes of all its volumes and snapshots together."""

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
        """What the folder holds now.

        :raises OSError: when it cannot be read
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
        """The capabilities for Cinder's scheduler, which finds ``a:b`` of a type's extra specs as ``[a][b]`` only."""
        report: dict[str, Any] = dict(self.capabilities)
        for key, value in self.capabilities.items():
            scope, colon, name = key.partition(":")
            if colon:
                report.setdefault(scope, {})[name] = value
        return report


def parse_pools(lines: Iterable[str], root: Path, default: str) -> dict[str, Pool]:
    """Name → pool, as the option's lines say; without a line one pool called ``default``, which is ``root`` itself.

    :param root: the folder in which the pools' folders are
    :raises ValueError: naming the line that says something else, or twice the same
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
