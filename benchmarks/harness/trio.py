"""Three proxies over one storage: with Sluice, plain, and plain again.

Storage, memcached and the node services of Sluice are a ``sluice_aio`` cluster without proxies.  The
three proxies have one worker each and differ in nothing but port and pipeline; they can be restarted in
any order, because of two identical instances the one started first is a little slower.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.pairs import INSTANCES, PLAIN, SLUICE

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.ports import free_port, probe
from sluice_aio.base.processes import ProcessId
from sluice_aio.base.setup import KEYS, PROXY, READS, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import PLAIN_SWIFT, Program, swift_command
from sluice_aio.conf.common import USERS
from sluice_aio.conf.proxy import proxy_conf
from sluice_core.describe import FILTER
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Facts
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.store.records import Draft
from sluice_core.store.store import Store

USER: Final = "test:tester"
KEY, ACCOUNT = USERS[USER]
_NODE: Final = (PLAIN_SWIFT - {"plain"}) | {"redis", "rabbit", "agent"}
_HEALTHCHECK: Final = b"GET /healthcheck HTTP/1.0\r\n\r\n"
_BATCH: Final = 1000
#: The measured code runs in the proxies; the storage below all three is plain Swift's.
SETUP: Final = Setup(parts=frozenset({PROXY, READS, KEYS}), proxy_workers=1)
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "objects": tuple(OBJECT_DEVICES),
    "container": ("container",),
    "account": ("account",),
}


class Trio:
    """The three proxies and what is below them, in ``folder``; a context manager.

    ``other`` is the type of the second and the third: ``plain``, or ``encrypted`` for Swift's own encryption.
    """

    def __init__(self, folder: Path, setup: Setup = SETUP, other: str = PLAIN) -> None:
        self.layout = Layout.free(folder)
        self.setup = setup
        self.cluster = Cluster(self.layout, _NODE, setup=setup)
        self._other = other
        self._ports = {SLUICE: self.layout.ports["proxy"], PLAIN: self.layout.ports["plain"]}
        self._programs: dict[str, Program] = {}
        self._stack = contextlib.ExitStack()
        self.assignments = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.cluster)
            self._ports.setdefault("twin", free_port())
            self._programs = {name: self._program(name) for name in INSTANCES}
            stack.callback(self._stop)
            self.restart(INSTANCES)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def restart(self, order: Sequence[str]) -> None:
        """Stop all proxies, start them in ``order``, and let each serve an object request.

        At the first request Sluice's worker opens the snapshot and reports its keywords to the agent.
        """
        self._stop()
        for name in order:
            self._programs[name].start()
        for name in order:
            self._programs[name].wait_ready()
        for name in order:
            client = self.client(name)
            client.request("HEAD", "nothing/here")
            client.close()

    def client(self, name: str) -> SwiftHttp:
        """A client with a token, for threads, of the instance ``name``.

        :raises PeerError: if it is unreachable
        """
        return SwiftHttp(f"http://127.0.0.1:{self._ports[name]}").login(USER, KEY)

    def cpu(self, name: str) -> dict[str, float]:
        """CPU seconds so far of the proxy ``name`` and of the servers below all proxies."""
        used = {"proxy": cpu_seconds(self._pids(name))}
        for group, members in _GROUPS.items():
            used[group] = cpu_seconds(self.cluster.process(member).pid for member in members)
        return used

    def assign(self, assignments: Iterable[Assignment]) -> None:
        """Write ``assignments`` as a controller would, and wait until the node's agent has applied them.

        :raises PeerError: if it has not after two minutes, or refuses any
        """
        wanted = list(assignments)
        store = Store(self.cluster.redis_url)
        try:
            epoch = 0
            for first in range(0, len(wanted), _BATCH):
                epoch = store.commit(Draft("benchmark", puts=tuple(wanted[first : first + _BATCH]))).epoch
            self.assignments += len(wanted)
            self._await_applied(store, epoch)
        finally:
            store.close()

    def check_in_force(self, container: str, *keywords: str) -> None:
        """Check that ``keywords`` apply to uploads into ``container``, for readers of the snapshot.

        :raises PeerError: if they do not
        """
        reader = SnapshotReader(self.layout.snapshots)
        reader.refresh()
        try:
            found = reader.find(ACCOUNT, container, "any").resolve(Facts("PUT"))
            if [step.keyword for step in found.get(FILTER, ())] != list(keywords):
                wanted = "`, `".join(keywords)
                raise PeerError(f"`{wanted}` does not apply to `{container}`, found `{found}`; {reader.problem}")
        finally:
            reader.close()

    def settle(self, limit: float = 30.0) -> None:
        """Wait until the servers are idle, at most ``limit`` seconds."""
        end = time.monotonic() + limit
        before = self._all_cpu()
        while time.monotonic() < end:
            time.sleep(0.5)
            now = self._all_cpu()
            if now - before < 0.05:
                return
            before = now

    def _await_applied(self, store: Store, epoch: int) -> None:
        end = time.monotonic() + 120
        while True:
            reports = store.nodes()
            if reports and all(one.epoch >= epoch and one.assignments == self.assignments for one in reports):
                return
            if time.monotonic() > end:
                raise PeerError(f"epoch {epoch} with {self.assignments} assignments is not applied: `{reports}`")
            time.sleep(0.05)

    def _all_cpu(self) -> float:
        groups = [pid for name in self._programs for pid in self._pids(name)]
        names = [name for members in _GROUPS.values() for name in members]
        return cpu_seconds([*groups, *(self.cluster.process(name).pid for name in [*names, "agent"])])

    def _pids(self, name: str) -> Iterator[int]:
        main = self._main(name)
        return (member.pid for member in main.session()) if main is not None else iter(())

    def _main(self, name: str) -> ProcessId | None:
        pid = self._programs[name].pid
        return None if pid is None else ProcessId.find(pid)

    def _program(self, name: str) -> Program:
        port = self._ports[name]
        server = "proxy" if name == SLUICE else self._other
        layout = replace(self.layout, ports={**self.layout.ports, server: port})
        file = layout.swift_dir / f"bench-{name}.conf"
        conf = proxy_conf(layout, plain=name != SLUICE, setup=self.setup, server=server)
        file.write_text(conf, encoding="utf-8")
        command = swift_command(self.layout, "swift-proxy-server", str(file), "-v")
        return Program(f"bench-{name}", port, layout.logs, command, lambda: probe(port, _HEALTHCHECK)[9:12] == b"200")

    def _stop(self) -> None:
        for name, program in self._programs.items():
            main = self._main(name)
            if program.running and main is not None:
                main.end(15.0)
            program.stop()
