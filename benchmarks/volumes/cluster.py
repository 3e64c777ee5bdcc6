"""A cluster with Cinder and a konnector, and its volumes that are attached to this machine."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.harness.fio import device_target, loading
from benchmarks.harness.scale import Scale, say

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder.konnector import run_folder
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_block.stack.page import Page
from sluice_client import Client
from sluice_core.errors import PeerError

_SERVICES: Final = frozenset({"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"})
#: Seconds for an operation of Cinder, and for an awaited event.
_WAIT: Final = 30.0
#: Bytes of a volume that loads use.
USED: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class ClusterVolume:
    """An attached volume, and the page that its filters have in memory."""

    id: str
    device: str
    page: Page

    def moved(self) -> int:
        """Bytes that were read and written."""
        counters = self.page.counters()
        return counters.read_bytes + counters.written_bytes

    @contextlib.contextmanager
    def loaded(self, load: str) -> Iterator[None]:
        """Load the volume with fio in requests of 64 KB during the context; fio has begun already.

        :param load: as of fio's ``rw``
        :raises PeerError: if a request failed
        """
        before = self.moved()
        with loading(device_target(self.device, USED), load, "64k"):
            wait_until(f"fio has not begun with volume `{self.id}`", lambda: self.moved() != before)
            yield


@dataclass(frozen=True, slots=True)
class VolumeCluster:
    """A running cluster, called as its administrator."""

    layout: Layout
    api: Client

    def pool(self) -> str:
        """The pool of the volumes, once an actor host has read it."""

        names: list[str] = []

        def is_read() -> bool:
            names[:] = [one["name"] for one in self.api.pools() if one["name"].endswith("#fast")]
            return bool(names)

        wait_until("no actor host has read the pools of Cinder", is_read, period=0.2)
        return names[0]

    @contextlib.contextmanager
    def volume(self, name: str) -> Iterator[ClusterVolume]:
        """A volume of 1 GiB, attached during the context.

        :raises PeerError: if it is not attached
        """
        key = str(self.api.create_volume(1, wait=_WAIT, name=name)["volume"])
        made = self.api.attach_volume(key, self.layout.node, wait=_WAIT)
        if made["state"] != "done":
            raise PeerError(f"volume `{name}` is not attached: {made['reason']}")
        page = Page.open(run_folder(self.layout) / key / "page")
        try:
            yield ClusterVolume(key, str(made["data"]["device"]), page)
        finally:
            page.close()
            self.api.detach_volume(key, wait=_WAIT)
            self.api.delete_volume(key, wait=_WAIT)


@contextlib.contextmanager
def volume_cluster(scale: Scale, name: str) -> Iterator[VolumeCluster]:
    """A new cluster.

    :raises PeerError: for users other than root
    """
    if os.geteuid() != 0:
        raise PeerError("loop devices are root's")
    say(f"{name}: starting a cluster")
    layout = Layout.free(scale.folder / name)
    with Cluster(layout, _SERVICES, setup=Setup(parts=frozenset(), auth=KEYSTONE)) as cluster:
        password = seed.password(layout, seed.ADMIN)
        token = KeystoneHttp(layout.keystone_url).login(seed.ADMIN, password, seed.ADMIN)
        with Client(cluster.api_url, token.id) as api:
            yield VolumeCluster(layout, api)


def wait_until(complaint: str, condition: Callable[[], bool], patience: float = _WAIT, period: float = 0.002) -> float:
    """Return the Unix time at which ``condition`` was first true.

    :param period: seconds between two checks
    :raises PeerError: with ``complaint``, if it is not within ``patience`` seconds
    """
    until = time.monotonic() + patience
    while not condition():
        if time.monotonic() > until:
            raise PeerError(f"{complaint} after {patience:g} s")
        time.sleep(period)
    return time.time()
