"""The accounts in the databases of this node, for jobs that process all accounts of the cluster.

A job would skip an account that is missing here, so each database that cannot be read is reported: only databases that
disappeared are skipped, since replicators move them.  An account that stores copies of contracted objects stands for
the account of these objects; other accounts of Swift's own hold no objects of clients.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_middleware.swift import storage_api
from sluice_middleware.usage.databases import AccountRow, database_folders, database_path, read_account_row, signature
from sluice_middleware.usage.space import StorageConf, all_devices
from sluice_rewrites.accounts import AccountsFound, owner_account


@dataclass(slots=True)
class _Found:
    accounts: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


class AccountReader:
    """Caches every database, so that only changed ones are opened."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, AccountRow | None]] = {}

    def read(self, confs: Sequence[StorageConf]) -> AccountsFound:
        """Return the accounts of all databases on the devices of ``confs``."""
        collected, known = _Found(), self._known
        self._known = {}
        before = all_devices(confs)
        for device in before:
            datadir = device / storage_api.ACCOUNTS
            for folder in database_folders(datadir, lambda error: collected.faults.append(f"{error}")):
                self._add(folder, known.get(folder), collected)
        try:
            ring = storage_api.ring_devices("account", confs[0].swift_dir)
        except (OSError, ValueError) as error:
            collected.faults.append(f"the account ring cannot be read: {error}")
            ring = []
        weighed = [device for device in ring if device["weight"] > 0]
        return AccountsFound(
            tuple(sorted(collected.accounts)),
            tuple(map(_label, weighed)),
            tuple(map(_label, _local_devices(weighed, confs, frozenset(before)))),
            tuple(collected.faults),
        )

    def _add(self, folder: str, known: tuple[int, AccountRow | None] | None, collected: _Found) -> None:
        try:
            now = signature(folder)
            if known is None or known[0] != now:
                known = (now, read_account_row(database_path(folder)) if now else None)
        except (OSError, sqlite3.Error, storage_api.LockTimeout) as error:
            if not os.path.isdir(folder):
                return
            if known is None:
                collected.faults.append(f"{folder}: {error}")
                return
        self._known[folder] = known
        row = known[1]
        if row is not None and not row.deleted and not owner_account(row.account).startswith("."):
            collected.accounts.add(owner_account(row.account))


def _label(device: Mapping[str, Any]) -> str:
    return f"{device['ip']}:{device['port']}/{device['device']}"


def _local_devices(
    ring: Sequence[Mapping[str, Any]], confs: Sequence[StorageConf], read: frozenset[Path]
) -> list[Mapping[str, Any]]:
    """Return the ring's devices that are on this node, were ``read`` and are still mounted.

    Several servers of one address may have devices of the same name; then each of them must be here.
    """
    local: dict[tuple[str, int, str], Mapping[str, Any]] = {}
    here: dict[str, set[Path]] = {}
    for conf in confs:
        addresses = storage_api.whataremyips(conf.bind_ip)
        for path in read.intersection(conf.mounted()):
            here.setdefault(path.name, set()).add(path)
        for device in ring:
            if device["device"] in here and storage_api.is_local_device(addresses, None, device["ip"], device["port"]):
                local[device["ip"], device["port"], device["device"]] = device
    names = Counter(name for _, _, name in local)
    return [device for device in local.values() if names[device["device"]] <= len(here[device["device"]])]
