"""For tests and measurements of isolated filters: code to upload, and a supervisor of their own.

with supervisor(Limits(patience=1)) as folder:
    team = ProcessTeam(store, folder)
    Shout = uploaded(store, team, "shout", "Shout", SHOUT)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import wasmtime

from sluice_code.code_store import CodeStore
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter
from sluice_sandbox.api import SandboxTeam, load_filter
from sluice_sandbox.limits import Limits

#: Filters in Python, as somebody would upload them.
NOOP: Final = b"""
class Noop:
    def __init__(self, params, direction):
        pass

    def feed(self, data):
        return data

    def finish(self):
        return b""
"""
XOR: Final = b"""
class Xor:
    def __init__(self, params, direction):
        key = params.get("key", 90)
        self._table = bytes(value ^ key for value in range(256))

    def feed(self, data):
        return data.translate(self._table)

    def finish(self):
        return b""
"""
SORT: Final = b"""
class Sort:
    def __init__(self, params, direction):
        self._rest = []

    def feed(self, data):
        self._rest.append(data)
        return b""

    def finish(self):
        return b"".join(sorted(b"".join(self._rest).splitlines(True)))
"""
#: Filters in WebAssembly, in its text format.
WAT: Final = Path(__file__).parents[3] / "filters" / "wasm"
#: The roots of jails, kept between runs; every user must be able to read the folder.
CACHE: Final = Path(tempfile.gettempdir()) / f"sluice-jail-{os.getuid()}"


def upload(
    code: bytes, keyword: str, main: str, environment: str = "process", language: str = "python", **more: Any
) -> Upload:
    """The registry's entry after registering ``code``."""
    digest = hashlib.sha256(code).hexdigest()
    return Upload(keyword, environment, language, main, digest, len(code), **more)


def uploaded(store: CodeStore, team: SandboxTeam, code: bytes, keyword: str, main: str, **more: Any) -> type[Filter]:
    """The filter of ``code``; raises the error that prevents it."""
    language = "python" if team.environment == "process" else "wasm"
    one = upload(code, keyword, main, team.environment, **{"language": language, **more})
    store.add(code, one.sha256)
    return load_filter(one, store, team)


def compiled(name: str) -> bytes:
    """One of Sluice's WebAssembly filters."""
    return bytes(wasmtime.wat2wasm((WAT / f"{name}.wat").read_text()))


@contextmanager
def supervisor(limits: Limits | None = None, more: tuple[str, ...] = ()) -> Iterator[Path]:
    """A supervisor in a process of its own; yields its socket's folder."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-sbx-"))
    folder.chmod(0o755)
    command = [sys.executable, "-m", "sluice_sandbox.cli", "serve", "--folder", str(folder), "--cache", str(CACHE)]
    asked = Limits() if limits is None else limits
    for one in fields(Limits):
        if one.name in ("memory", "patience", "cpu", "cpu_per_mb", "workers", "tenants", "idle"):
            command += [f"--{one.name.replace('_', '-')}", str(getattr(asked, one.name))]
    process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            process.kill()
            raise AssertionError(process.communicate()[1].decode())
        yield folder
    finally:
        process.terminate()
        process.communicate(timeout=30)
        shutil.rmtree(folder)


def jailed(folder: Path) -> list[int]:
    """The processes below the supervisor of ``folder``, jails and their contents."""
    parents: dict[int, int] = {}
    keepers: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if b"sluice_sandbox.cli" in words and str(folder).encode() in words:
            keepers.add(int(entry.name))
    found: list[int] = []
    below = keepers
    while below:
        below = {one for one, parent in parents.items() if parent in below}
        found += below
    return sorted(found)
