"""A cluster for tests of bandwidth objectives: two proxies and three object servers, each with an agent of
its own and a configured capacity, and tenants that load it.

The capacity of the cluster is divided among the nodes of the side that throttles; those of the other side have
three times as much, so that they never limit.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from tests.support.cluster.load import Load, Spec
from tests.support.cluster.locked_memory import locked

from sluice_aio.base.layout import STORAGE_AGENTS, Layout
from sluice_aio.base.setup import DISKFILE, GOLD, OBJECT, PROXY, STORAGE, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, SECOND_NODE
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_core.errors import PeerError
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.store.operation import Operation
from sluice_core.store.store import Store

#: A user that may write in every account.
_USER: Final = "test:tester6"
#: Seconds until shares are in force after a policy was accepted.
_LIMIT: Final = 20.0
_PROXIES: Final = ("proxy", "proxy2")
_PROXY_AGENTS: Final = {"proxy": "agent", "proxy2": "agent2"}
_ROOM: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The cluster's capacity, in bytes per second of client payload; None: not configured, to be estimated."""

    get: float | None = 90e6
    put: float | None = 45e6
    replicas: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The set-up of the stage; ``side`` is ``proxy`` or ``storage_node``."""

    side: str = "proxy"
    capacity: Capacity = field(default_factory=Capacity)
    sizes: Sequence[int] = (2 << 20,)
    objects: int = 4
    storage_options: Mapping[str, str] = field(default_factory=dict)
    proxy_workers: int = 1
    storage_workers: int = 0
    #: Whether object servers reserve the space of an upload when it starts.
    fallocate: bool = True


class Stage:
    """The cluster in ``folder``; a context manager."""

    def __init__(self, folder: Path, terms: Terms | None = None, disks: Path | None = None) -> None:
        self.terms = terms or Terms()
        setup = Setup(
            parts=frozenset({PROXY, STORAGE, OBJECT, DISKFILE}),
            s3api=False,
            proxy_workers=self.terms.proxy_workers,
            storage_workers=self.terms.storage_workers,
            storage_agents=True,
            agent_options=self._capacities(),
            storage_options=self.terms.storage_options,
            fallocate=self.terms.fallocate,
        )
        layout = Layout.free(folder)
        if disks is not None:
            layout = Layout(layout.folder, layout.ports, layout.node, disks)
        self.cluster = Cluster(layout, DEFAULT | SECOND_NODE | frozenset(STORAGE_AGENTS), setup=setup)
        self._stack = contextlib.ExitStack()
        self.client: Client
        self.swift: SwiftHttp
        self.store: Store

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.cluster)
            self.client = stack.enter_context(Client(self.cluster.api_url, self.cluster.token))
            self.swift = SwiftHttp(self.cluster.proxy_url).login(_USER, USERS[_USER][0])
            stack.callback(self.swift.close)
            self.store = Store(self.cluster.redis_url)
            stack.callback(self.store.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _capacities(self) -> dict[str, dict[str, str]]:
        of, here = self.terms.capacity, self.terms.side == "proxy"
        found: dict[str, dict[str, str]] = {}
        for names, prefix, mine in ((_PROXY_AGENTS.values(), "proxy", here), (STORAGE_AGENTS, "storage", not here)):
            for name in names:
                room = 1.0 if mine else _ROOM
                options = {}
                for method, rate in (("get", of.get), ("put", of.put)):
                    if rate is not None:
                        copies = of.replicas if (prefix, method) == ("storage", "put") else 1
                        # the proxies always throttle uploads
                        factor = room if method == "get" else (1.0 if prefix == "proxy" else _ROOM)
                        options[f"{prefix}_{method}_bw"] = f"{round(rate * factor * copies / len(names))}Bps"
                found[name] = options
        return found

    # -- actions of administrators

    def say(self, sentence: str) -> str:
        """Create a policy; return its id.

        :raises PeerError: when it is not soon in force on all nodes
        """
        policy = self.client.create_policy(sentence, wait=10)
        enforced = policy["enforced"]
        if enforced["nodes"] != enforced["total"]:
            raise PeerError(f"`{sentence}` is not in force everywhere: {enforced}")
        return str(policy["id"])

    def await_share(self, account: str, method: str = "GET", rate: float | None = None) -> None:
        """Wait until a flow of ``account`` has its share (``rate`` within 5 %, if given).

        :raises PeerError: when it does not get it
        """
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            for flow in self.flows():
                if flow["account"] == account and flow["method"] == method and flow["active"]:
                    share = flow["share"] or 0.0
                    if rate is None or abs(share - rate) <= 0.05 * rate:
                        return
            time.sleep(0.1)
        raise PeerError(f"`{account}` has no share of {method}: {self.flows()}")

    def flows(self) -> list[Mapping[str, Any]]:
        """The measured and assigned rates of the last second."""
        picture = self.picture()
        return [] if picture is None else list(picture.flows)

    def picture(self) -> BandwidthReport | None:
        """The report of the host that divides bandwidth; None without one."""
        raw = self.store.run(Operation((("GET", self.store.keys.bandwidth),), lambda replies: replies[0]))
        return None if raw is None else BandwidthReport.decode(raw)

    # -- actions of tenants

    def fill(
        self,
        account: str,
        container: str = "c",
        sizes: Collection[int] = (),
        objects: int = 0,
        storage_policy: str = GOLD,
    ) -> None:
        """Store the objects that clients of ``account`` read.

        :raises PeerError: when Swift refuses them
        """
        url = quote(f"/v1/{account}/{container}")
        self._ask("PUT", url, headers={"X-Storage-Policy": storage_policy})
        for size in sizes or self.terms.sizes:
            body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            for number in range(objects or self.terms.objects):
                self._ask("PUT", f"{url}/{size}-{number}", body)

    def forget(self, sizes: Collection[int] = ()) -> None:
        """Drop stored files (of ``sizes``, if any are given) from the page cache, so that they are read from disks."""
        for path in self._stored(sizes):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def keep(self, sizes: Collection[int] = ()) -> contextlib.AbstractContextManager[None]:
        """Keep them in memory, whatever else the kernel needs memory for, until the context ends."""
        return locked(self._stored(sizes))

    def _stored(self, sizes: Collection[int]) -> Iterator[Path]:
        for folder in self.cluster.device_folders:
            for path in folder.rglob("*.data"):
                if not sizes or path.stat().st_size in sizes:
                    yield path

    def _ask(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        headers = {"X-Auth-Token": self.swift.token, **_length(body), **(headers or {})}
        answer = self.swift.raw(method, target, headers, body)
        if answer.status >= 300:
            raise PeerError(f"{method} {target}: status {answer.status}")

    def load(
        self,
        account: str,
        connections: int = 8,
        method: str = "GET",
        container: str = "c",
        sizes: Sequence[int] = (),
        proxies: Sequence[str] = _PROXIES,
        seed: int = 0,
    ) -> Load:
        """Clients of ``account``, not started yet."""
        places = [self.cluster.layout.url(name).removeprefix("http://") for name in proxies]
        sizes = tuple(sizes or self.terms.sizes)
        target, token = f"/v1/{account}", self.swift.token
        return Load(Spec(places, token, target, container, method, connections, sizes, self.terms.objects, seed))


def _length(body: bytes) -> dict[str, str]:
    return {} if body else {"Content-Length": "0"}


__all__ = ["Capacity", "Stage", "Terms"]
