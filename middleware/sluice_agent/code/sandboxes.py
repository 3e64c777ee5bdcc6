"""Whether the isolated environments that this node was given would work now: asked now and then, off the loop.

An environment is asked the least that only one that works can answer: the supervisor of jailed processes any
question, the Docker engine for a sign of life, Swift's interpreter for WebAssembly's run time.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sluice_agent.code.validation import imports
from sluice_core.code.sandbox_trial import Interpreter
from sluice_core.describe import PROCESS, STORLET, WASM
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

OK: Final = "ok"
_EVERY: Final = 15.0
_SELDOM: Final = 600.0
_PATIENCE: Final = 5.0
#: The supervisor's socket in its folder (``sluice_sandbox.process.session``).
_CONTROL: Final = "control"
#: It knows no such thing to do, and says so.
_QUESTION: Final = json.dumps({"op": "ping", "tenant": ""}).encode() + b"\n"
_UNIX: Final = "unix"
_RUN_TIME: Final = "wasmtime"

Check = Callable[[], str]


class Sandboxes:
    """What each environment of this node answers; ``told`` is called when that changes."""

    def __init__(self, checks: Mapping[str, Check], told: Callable[[], None] = lambda: None) -> None:
        """
        :param checks: environment → says what is wrong with it, or nothing; may wait
        """
        self._checks = dict(checks)
        self._told = told
        self._states: dict[str, str] = {}

    @property
    def states(self) -> Mapping[str, str]:
        """Environment → ``ok`` or what is wrong with it, as of the last look."""
        return self._states

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while self._checks:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Ask all of them now."""
        states = {name: await asyncio.to_thread(check) or OK for name, check in self._checks.items()}
        if states == self._states:
            return
        for name, state in states.items():
            if state != self._states.get(name):
                log.log(logging.INFO if state == OK else logging.WARNING, "environment `%s`: %s", name, state)
        self._states = states
        self._told()


def checks(sandbox_dir: str, storlets_engine: str, wasm: bool, given: Interpreter) -> dict[str, Check]:
    """How to ask the environments that the agent's options name."""
    found: dict[str, Check] = {}
    if sandbox_dir:
        found[PROCESS] = lambda: supervisor(Path(sandbox_dir))
    if storlets_engine:
        found[STORLET] = lambda: engine(storlets_engine)
    if wasm:
        found[WASM] = Seldom(lambda: run_time(given))
    return found


class Seldom:
    """A check that costs something, and whose answer changes with what is installed only."""

    def __init__(self, check: Check, pause: float = _SELDOM, clock: Callable[[], float] = time.monotonic) -> None:
        self._check = check
        self._pause = pause
        self._clock = clock
        self._due = 0.0
        self._answer = ""

    def __call__(self) -> str:
        now = self._clock()
        if now >= self._due:
            self._answer = self._check()
            self._due = now + self._pause
        return self._answer


def supervisor(folder: Path) -> str:
    """What is wrong with `sluice-sandbox serve`; empty when it answers."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_PATIENCE)
            line.connect(str(folder / _CONTROL))
            line.sendall(_QUESTION)
            with line.makefile("rb") as answers:
                answer = answers.readline()
    except OSError as error:
        return f"no sandbox supervisor at `{folder}`: {error.strerror or error}"
    return "" if answer else f"the sandbox supervisor at `{folder}` hung up"


def engine(url: str) -> str:
    """What is wrong with the Docker engine at ``url``; empty when it answers."""
    parts = urlsplit(url)
    connection = _Local(parts.path) if parts.scheme == _UNIX else _remote(parts.netloc)
    try:
        connection.request("GET", "/_ping")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no docker engine at `{parts.path or parts.hostname}`: {error}"
    finally:
        connection.close()
    return "" if status == http.client.OK else f"the docker engine answers {status}"


def _remote(place: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(place, timeout=_PATIENCE)


class _Local(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_PATIENCE)
        self.sock.connect(self._path)


def run_time(given: Interpreter) -> str:
    """Why WebAssembly cannot run in Swift's interpreter; empty when it can."""
    try:
        return imports(_RUN_TIME, given)
    except PeerError as error:
        return str(error)
