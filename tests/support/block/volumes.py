"""Volumes of a cluster as their owner uses them: created by REST, and read and written on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest
from tests.support.block.cinder import LIMIT, login
from tests.support.block.konnector_client import KonnectorClient

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder import backends
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import KONNECTORS
from sluice_client import Client
from sluice_core.store.store import Store
from sluice_volumes.konnector_client import konnector_urls

#: All services for volumes, on one node.
SERVICES: Final = frozenset({"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"})


@contextlib.contextmanager
def volume_cluster(more: Collection[str] = ()) -> Iterator[Cluster]:
    """A cluster of :data:`SERVICES` and ``more``, in a folder of its own, whose nodes have reported konnectors."""
    if os.geteuid() != 0:
        pytest.skip("loop devices and mounts are root's")
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(parts=frozenset(), auth=KEYSTONE, api_options={"workers": "1"})
    try:
        with Cluster(Layout.free(folder), SERVICES.union(more), setup=setup) as running:
            _wait_for_konnectors(running, len(SERVICES.union(more).intersection(KONNECTORS)))
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_konnectors(cluster: Cluster, count: int) -> None:
    store = Store(cluster.redis_url)
    deadline = time.monotonic() + LIMIT
    try:
        while (known := len(konnector_urls(store.nodes()))) < count:
            assert time.monotonic() < deadline, f"{known} of {count} konnectors are known"
            time.sleep(0.05)
    finally:
        store.close()


class VolumeOwner:
    """``user`` of a cluster; its volumes are detached and deleted at the end."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self.layout = cluster.layout
        self.cinder = login(cluster.layout, user)
        self.client = Client.from_session(self.cinder.client.session, cluster.api_url, timeout=LIMIT)
        self.made: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.made:
            if self.client.volume(one)["node"]:
                self.detach(one)
            self._ended(self.client.delete_volume(one, wait=30))
        self.client.close()

    def create(self, **wanted: Any) -> str:
        """The id of a new volume of 1 GiB."""
        self.made.append(self._ended(self.client.create_volume(1, wait=30, **wanted))["volume"])
        return self.made[-1]

    def attach(self, volume: str, node: str = "", **how: Any) -> str:
        """The device that shows the volume on ``node``, by default the first."""
        ordered = self.client.attach_volume(volume, node or self.layout.node, wait=30, **how)
        return str(self._ended(ordered)["data"]["device"])

    def detach(self, volume: str) -> None:
        """Detach a volume."""
        self._ended(self.client.detach_volume(volume, wait=30))

    def _ended(self, operation: Any) -> Any:
        """The operation when it is done."""
        while operation["state"] == "under_way":
            operation = self.client.volume_operation(operation["id"], wait=10)
        assert operation["state"] == "done", operation
        return operation


def konnector(layout: Layout) -> KonnectorClient:
    """The konnector of a node, for root of its machine."""
    return KonnectorClient(run_folder(layout) / "api.sock")


def stored(layout: Layout, volume: str) -> Path:
    """The stored bytes of a volume in the back end."""
    (found,) = (backends.folder(layout) / "nbd").rglob(f"volume-{volume}")
    return found


def kill_program(layout: Layout, volume: str, role: str) -> None:
    """Kill a program of an attached volume: its nbdkit (``stack``) or the ``keeper`` of its device."""
    (record,) = (run_folder(layout) / volume).glob(f"{role}*.process")
    found = json.loads(record.read_text())
    os.kill(found.get("process", found)["pid"], signal.SIGKILL)
