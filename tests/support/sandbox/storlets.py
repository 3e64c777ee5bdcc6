"""For tests without Docker: the agent as an ordinary process of this machine.

All parts are real except the isolation: gateway, wire, agent, daemons, storlets.  Only for harmless storlets.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice_code.code_store import CodeStore
from sluice_core.describe import STORLET
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter, Hint
from sluice_sandbox.api import load_filter
from sluice_sandbox.limits import Limits, Session, Step
from sluice_sandbox.storlets.container import Container, ContainerSettings
from sluice_sandbox.storlets.team import StorletTeam

ACCOUNT = "AUTH_test"


class BareContainer(Container):
    """A container without isolation."""

    def __init__(self, account: str, place: ContainerSettings, limits: Limits) -> None:
        super().__init__(account, place, limits)
        self.sockets_inside, self.code_inside = self.sockets, self.code
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def replace(self, unless: Callable[[], bool] | None = None) -> None:
        if unless is None or not unless():
            self.end()

    def end(self) -> None:
        """Kill the factory, with its daemons and their runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for entry in self.sockets.iterdir():
                entry.unlink()

    def _start(self) -> None:
        self.end()
        self.starts += 1
        command = [sys.executable, *self._command()]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)


class BareTeam(StorletTeam):
    """Storlets in bare containers; streams without an account belong to ``ACCOUNT``."""

    container_class = BareContainer

    @classmethod
    @contextmanager
    def open(cls, limits: Limits | None = None) -> Iterator[BareTeam]:
        """An environment for the block."""
        folder = Path(tempfile.mkdtemp(prefix="s-"))
        team = cls(ContainerSettings("", "", folder / "s", folder), CodeStore(folder / "c"), limits)
        try:
            yield team
        finally:
            for container in team._containers.values():
                assert isinstance(container, BareContainer)
                container.end()
            shutil.rmtree(folder, ignore_errors=True)

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        return super().session(steps, hint if hint.account else Hint(size=hint.size, account=ACCOUNT))

    def add(self, keyword: str, code: str | bytes, main: str = "storlet.Storlet", **more: Any) -> type[Filter]:
        """Register ``code`` as ``keyword``."""
        upload = registered(self._store, keyword, code, main, **more)
        return load_filter(upload, self._store, self)


def registered(store: CodeStore, keyword: str, code: str | bytes, main: str, **more: Any) -> Upload:
    """An upload whose code is in ``store``."""
    raw = textwrap.dedent(code).encode() if isinstance(code, str) else code
    sha256 = hashlib.sha256(raw).hexdigest()
    store.add(raw, sha256)
    return Upload(keyword, STORLET, more.pop("language", "python"), main, sha256, len(raw), **more)


def python_storlet(body: str, head: str = "") -> str:
    """A Python storlet ``storlet.Storlet`` whose run is ``body``, with ``source``, ``target`` and ``params``."""
    return (
        "import os, signal, socket, sys, time\n"
        + textwrap.dedent(head)
        + "\nclass Storlet:\n"
        + "    def __init__(self, logger):\n        self.logger = logger\n"
        + "    def __call__(self, in_files, out_files, params):\n"
        + "        source, target = in_files[0], out_files[0]\n"
        + textwrap.indent(textwrap.dedent(body), " " * 8)
        + "\n"
    )


def through(one: Filter | Sequence[Filter], data: bytes, account: str = ACCOUNT, piece: int = 65536) -> bytes:
    """``data`` through the encoders of neighbours in one environment."""
    steps = [one] if isinstance(one, Filter) else list(one)
    assert steps[0].team is not None
    stream = steps[0].team.encoder(steps, Hint(size=len(data), account=account))
    out = [stream.feed(data[begin : begin + piece]) for begin in range(0, len(data), piece)]
    return b"".join(out) + stream.finish()


def read_through(one: Filter, data: bytes, asked: Mapping[str, str] | None = None) -> bytes:
    """``data`` through the reader of ``one``, as on GET."""
    stream = one.reader(Hint(size=len(data), account=ACCOUNT, asked=asked or {}))
    return (stream.feed(data) if data else b"") + stream.finish()
