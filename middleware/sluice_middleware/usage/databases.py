"""The usage of accounts and containers, from their databases on this node's devices.

The rows are those from which Swift answers HEAD requests; objects are not listed.  A database that did not change since
the last pass, by its files' sizes and times, is not opened.  Of several replicas on one node the highest value counts,
as between nodes: a replica that lags behind, or a fresh one on a handoff, lacks rows.

Skipped are accounts and containers that are deleted, Swift's own (their names begin with a dot, shards among them),
and containers that an object's update created before their own PUT arrived.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sluice_middleware.swift import storage_api

log = logging.getLogger(__name__)

#: Seconds to wait for a process that locks a database, before its committed rows are read.
_PATIENCE: Final = 1.0
_PENDING: Final = ".db.pending"
#: Seconds after a change within which file times may not differ after the next one.
_UNSETTLED: Final = 1.0
_EMPTY: Final = 0


class Usage(NamedTuple):
    """The usage of an account or a container."""

    stored: int
    objects: int


class Row(NamedTuple):
    """One account (``account``) or container (``account/container``)."""

    path: str
    usage: Usage


class AccountRow(NamedTuple):
    """An account as its database describes it."""

    account: str
    deleted: bool
    usage: Usage


@dataclass(slots=True)
class Pass:
    """The results of one pass over all databases."""

    accounts: dict[str, Usage] = field(default_factory=dict)
    containers: dict[str, Usage] = field(default_factory=dict)
    #: Databases that could not be read, and the last reason.
    unreadable: int = 0
    reason: str = ""


#: Folder of a database → the hash of its files' names, sizes and times, and its row if it counts.
Known = dict[str, tuple[int, Row | None]]


class DatabaseReader:
    """Caches every database, so that only changed ones are opened."""

    def __init__(self) -> None:
        self._known: Known = {}

    def read(self, devices: Iterable[Path]) -> Pass:
        """The rows of all databases on ``devices``."""
        rows_read = Pass()
        seen: Known = {}
        for device in devices:
            for datadir, read, rows in (
                (storage_api.ACCOUNTS, read_account, rows_read.accounts),
                (storage_api.CONTAINERS, read_container, rows_read.containers),
            ):
                for folder in database_folders(device / datadir):
                    self._visit(folder, read, rows, rows_read, seen)
        self._known = seen
        return rows_read

    def _visit(
        self,
        folder: str,
        read: Callable[[str], Row | None],
        rows: dict[str, Usage],
        rows_read: Pass,
        seen: Known,
    ) -> None:
        try:
            now = signature(folder)
            before = self._known.get(folder)
            if before is not None and before[0] == now:
                row = before[1]
            else:
                row = None if now == _EMPTY else read(database_path(folder))
        except (OSError, sqlite3.Error, storage_api.LockTimeout) as error:
            if os.path.isdir(folder):
                rows_read.unreadable += 1
                rows_read.reason = f"{folder}: {error}"
            return
        seen[folder] = (now, row)
        if row is not None:
            other = rows.get(row.path, row.usage)
            rows[row.path] = Usage(max(row.usage.stored, other.stored), max(row.usage.objects, other.objects))


def database_folders(datadir: Path, failed: Callable[[OSError], object] = lambda error: None) -> Iterator[str]:
    """The folders of databases: ``<datadir>/<partition>/<suffix>/<hash>``.

    :param failed: called with a folder that exists and cannot be listed
    """
    for partition in _subfolders(str(datadir), failed):
        for suffix in _subfolders(partition, failed):
            yield from _subfolders(suffix, failed)


def _subfolders(folder: str, failed: Callable[[OSError], object]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:  # a replicator moved it, or it never existed
        return []
    except OSError as error:
        failed(error)
        return []


def signature(folder: str) -> int:
    """A hash of the files of a database; :data:`_EMPTY` without files.

    A file that changed just now may change again without a visible difference, so its hash is never the same.
    """
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith((".db", _PENDING))]
    if not files:
        return _EMPTY
    settled = max(one.st_mtime for _, one in files) < time.time() - _UNSETTLED
    found = sorted((name, one.st_size, one.st_mtime_ns) for name, one in files)
    return hash((*found, 0 if settled else time.monotonic_ns()))


def database_path(folder: str) -> str:
    """The path by which brokers know a database; while a container shards, they find the newest file beside it."""
    return os.path.join(folder, f"{os.path.basename(folder)}.db")


def _options(path: str) -> Mapping[str, object]:
    # rows in the pending file belong to it; Swift's servers commit them when they read, too
    writable = os.access(os.path.dirname(path), os.W_OK)
    return {"stale_reads_ok": True, "pending_timeout": _PATIENCE, "skip_commits": not writable}


def read_account_row(path: str) -> AccountRow:
    """The account in the database at ``path``, of any kind."""
    with storage_api.AccountDatabase(path, **_options(path)) as broker:
        deleted, info = broker.is_deleted(), broker.get_info()
    return AccountRow(info["account"], deleted, Usage(int(info["bytes_used"]), int(info["object_count"])))


def read_account(path: str) -> Row | None:
    """The account in the database at ``path``; None when it does not count."""
    found = read_account_row(path)
    return None if found.deleted or found.account.startswith(".") else Row(found.account, found.usage)


def read_container(path: str) -> Row | None:
    """The container in the database at ``path``; None when it does not count."""
    with storage_api.ContainerDatabase(path, **_options(path)) as broker:
        info, deleted = broker.get_info_is_deleted()
    if deleted or info["account"].startswith(".") or storage_api.Timestamp(info["put_timestamp"]) <= 0:
        return None
    usage = Usage(int(info["bytes_used"]), int(info["object_count"]))
    return Row(f"{info['account']}/{info['container']}", usage)
