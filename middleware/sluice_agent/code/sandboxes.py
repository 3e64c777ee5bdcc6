"""Health checks of the isolated environments of this node, run every 15 seconds in a thread.

A check is the smallest request that only a working environment answers: an unknown operation for the supervisor of
jailed processes, a ping for the Docker engine, an import of the WebAssembly run time for Swift's interpreter.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sluice_agent.code.validation import import_error
from sluice_code.native_trial import Interpreter
from sluice_core.describe import PROCESS, STORLET, WASM
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

OK: Final = "ok"
_CHECK_SECONDS: Final = 15.0
_CACHE_SECONDS: Final = 600.0
_TIMEOUT: Final = 5.0
#: The supervisor's socket in its folder (``sluice_sandbox.process.session``).
_CONTROL: Final = "control"
#: An operation that the supervisor does not know, so that it answers with an error.
_UNKNOWN_OPERATION: Final = json.dumps({"op": "ping", "tenant": ""}).encode() + b"\n"
_UNIX: Final = "unix"
_RUN_TIME: Final = "wasmtime"

Check = Callable[[], str]


class Sandboxes:
    """The state of each environment of this node; ``on_change`` is called when a state changes."""

    def __init__(self, checks: Mapping[str, Check], on_change: Callable[[], None] = lambda: None) -> None:
        """
        :param checks: environment → function that returns the fault of the environment, or an empty string; it may
            block
        """
        self._checks = dict(checks)
        self._on_change = on_change
        #: Environment → ``ok`` or its fault, as of the last check.
        self.states: Mapping[str, str] = {}

    async def run(self) -> None:
        """Check all environments every 15 seconds until cancelled; return at once without environments."""
        while self._checks:
            await self.check_all()
            await asyncio.sleep(_CHECK_SECONDS)

    async def check_all(self) -> None:
        """Check all environments now, each in a thread; log and announce the states that changed."""
        states = {name: await asyncio.to_thread(check) or OK for name, check in self._checks.items()}
        if states == self.states:
            return
        for name, state in states.items():
            if state != self.states.get(name):
                log.log(logging.INFO if state == OK else logging.WARNING, "environment `%s`: %s", name, state)
        self.states = states
        self._on_change()


def sandbox_checks(sandbox_dir: str, storlets_engine: str, wasm: bool, interpreter: Interpreter) -> dict[str, Check]:
    """The checks of the environments that the agent's options name."""
    checks: dict[str, Check] = {}
    if sandbox_dir:
        checks[PROCESS] = lambda: check_supervisor(Path(sandbox_dir))
    if storlets_engine:
        checks[STORLET] = lambda: check_docker(storlets_engine)
    if wasm:
        checks[WASM] = CachedCheck(lambda: check_wasm(interpreter))
    return checks


@dataclass
class CachedCheck:
    """An expensive check whose result is kept for a while: it depends on installed software only."""

    check: Check
    pause: float = _CACHE_SECONDS
    clock: Callable[[], float] = time.monotonic
    due: float = 0.0
    result: str = ""

    def __call__(self) -> str:
        now = self.clock()
        if now >= self.due:
            self.result = self.check()
            self.due = now + self.pause
        return self.result


def check_supervisor(folder: Path) -> str:
    """Return the fault of `sluice-sandbox serve`; empty when it answers."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT)
            connection.connect(str(folder / _CONTROL))
            connection.sendall(_UNKNOWN_OPERATION)
            with connection.makefile("rb") as answers:
                answer = answers.readline()
    except OSError as error:
        return f"no sandbox supervisor at `{folder}`: {error.strerror or error}"
    return "" if answer else f"the sandbox supervisor at `{folder}` hung up"


def check_docker(url: str) -> str:
    """Return the fault of the Docker engine at ``url``; empty when it answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc or "localhost", timeout=_TIMEOUT)
    try:
        if parts.scheme == _UNIX:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_TIMEOUT)
            connection.sock.connect(parts.path)
        connection.request("GET", "/_ping")
        with connection.getresponse() as response:
            status = response.status
    except (OSError, http.client.HTTPException) as error:
        return f"no docker engine at `{parts.path or parts.hostname}`: {error}"
    finally:
        connection.close()
    return "" if status == http.client.OK else f"the docker engine answers {status}"


def check_wasm(interpreter: Interpreter) -> str:
    """Return why WebAssembly cannot run in Swift's interpreter; empty when it can."""
    try:
        return import_error(_RUN_TIME, interpreter)
    except PeerError as error:
        return str(error)
