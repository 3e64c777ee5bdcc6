"""nbdkit with Sluice's filters over a plugin, and a client of it, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_block.stack.build import library
from sluice_core.errors import PeerError

_PATIENCE: Final = 20.0
#: Debian's interpreter, for which python3-libnbd is built.
_PYTHON: Final = "/usr/bin/python3"


class RequestFailed(PeerError):
    """The server answered a request with ``errno``."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.errno = number


@dataclass(frozen=True, slots=True)
class Server:
    """A running nbdkit."""

    process: subprocess.Popen[str]
    socket: Path

    @property
    def uri(self) -> str:
        return f"nbd+unix:///?socket={self.socket}"


class Client:
    """One connection."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, operation: str, *arguments: Any) -> Any:
        """The value of one of the program's operations.

        :raises RequestFailed: when the server returns an error
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([operation, *arguments]), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if "errno" in answer:
            raise RequestFailed(answer["errno"], answer["text"])
        return answer["value"]

    def read(self, count: int, offset: int) -> bytes:
        return bytes.fromhex(self.ask("pread", count, offset))

    def write(self, data: bytes, offset: int) -> None:
        self.ask("pwrite", data.hex(), offset)


def nbdkit_command(built: Path, filters: Sequence[str], *arguments: str) -> list[str]:
    """nbdkit in the foreground with ``filters``, the first of them next to the client."""
    return ["nbdkit", "-f", *(f"--filter={library(built, name)}" for name in filters), *arguments]


@contextlib.contextmanager
def serve(
    folder: Path, built: Path, filters: Sequence[str], *arguments: str, threads: int = 16, name: str = "volume"
) -> Iterator[Server]:
    """nbdkit while it runs.

    :param arguments: plugin and parameters
    :raises PeerError: when it does not start, with its output
    """
    socket, ready = folder / f"{name}.sock", folder / f"{name}.pid"
    socket.unlink(missing_ok=True)
    ready.unlink(missing_ok=True)
    options = ("-U", str(socket), "-P", str(ready), "-t", str(threads))
    with open(folder / f"{name}.log", "w+", encoding="utf-8") as log:
        command = nbdkit_command(built, filters, *options, *arguments)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, text=True)
        try:
            until = time.monotonic() + _PATIENCE
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise PeerError(f"nbdkit did not come up: {log.read().strip()}")
                time.sleep(0.005)
            yield Server(process, socket)
        finally:
            process.kill()
            process.wait(_PATIENCE)


@contextlib.contextmanager
def connected(server: Server) -> Iterator[Client]:
    """A client while it is connected."""
    program = Path(__file__).with_name("nbd_program.py")
    process = subprocess.Popen(
        [_PYTHON, "-I", str(program), server.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield Client(process)
        finally:
            process.kill()
