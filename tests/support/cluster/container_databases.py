"""The databases of one container on the container servers' devices."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from sluice_aio.cluster.cluster import Cluster


def container_databases(cluster: Cluster, container: str, account: str = "AUTH_test") -> list[Path]:
    """The files of a container's databases: one for each replica, or two while it is sharded."""
    found = []
    for path in sorted(cluster.layout.devices.glob("databases/*/containers/*/*/*/*.db")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            if database.execute("SELECT account, container FROM container_info").fetchone() == (account, container):
                found.append(path)
    return found
