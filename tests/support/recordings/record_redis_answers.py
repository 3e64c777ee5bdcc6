"""``python -m tests.support.recordings.record_redis_answers``: records Redis' errors in several states.

Brings a real Redis into each of the states below, lets Sluice's stores use it through a relay that records each command
and the bytes of its response, and writes ``redis_answers.json`` with the versions of the recorded programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import hiredis
import redis
from tests.support.recordings.redis_answers import (
    CONNECTED,
    PATH,
    READ,
    by_async_client,
    by_client,
    command_name,
)

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import HOST, free_port

PLAIN: Final = "redis://127.0.0.1:{port}/0"
_KEYS: Final = 2000
#: Seconds in which Redis itself reports that it accepts no more clients.
_GREETS: Final = 0.1


class RedisWith(RedisServer):
    """A Redis without a file, with some settings."""

    def __init__(self, folder: Path, *settings: str) -> None:
        super().__init__(free_port(), folder, tied=True)
        self._settings = settings

    def argv(self) -> list[str]:
        return [*super().argv(), "--appendonly", "no", "--enable-debug-command", "local", *self._settings]

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1.0) as asked:
            asked.sendall(b"PING\r\n")
            return bool(asked.recv(64))
        return False


State = Callable[[Path], contextlib.AbstractContextManager[tuple[int, str]]]


def with_settings(*settings: str, url: str = PLAIN, before: tuple[tuple[Any, ...], ...] = ()) -> State:
    """A Redis that was started with ``settings`` and then got the commands ``before``."""

    @contextlib.contextmanager
    def state(folder: Path) -> Iterator[tuple[int, str]]:
        with RedisWith(folder, *settings) as server:
            with redis.Redis(port=server.port) as client:
                for command in before:
                    client.execute_command(*command)
            yield server.port, url

    return state


@contextlib.contextmanager
def loading(folder: Path) -> Iterator[tuple[int, str]]:
    """A Redis that reads its data slowly."""
    with RedisWith(folder) as server, redis.Redis(port=server.port) as client:
        client.mset({f"key{number}": "x" * 100 for number in range(_KEYS)})
        client.save()
    slow = ("--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
    with RedisWith(folder, *slow) as server:
        yield server.port, PLAIN


@contextlib.contextmanager
def busy(folder: Path) -> Iterator[tuple[int, str]]:
    """A Redis that runs an endless script."""
    with RedisWith(folder, "--busy-reply-threshold", "10") as server:
        script = threading.Thread(target=_run_for_ever, args=(server.port,))
        script.start()
        with redis.Redis(port=server.port) as client:
            while not _is_busy(client):
                time.sleep(0.02)
            yield server.port, PLAIN
            client.script_kill()
        script.join()


def _run_for_ever(port: int) -> None:
    with redis.Redis(port=port) as client, contextlib.suppress(redis.exceptions.ResponseError):
        client.eval("while true do end", 0)


def _is_busy(client: redis.Redis) -> bool:
    try:
        client.get("key")
    except redis.exceptions.ResponseError:
        return True
    return False


@contextlib.contextmanager
def full_of_clients(folder: Path) -> Iterator[tuple[int, str]]:
    """A Redis that accepts no more clients."""
    with RedisWith(folder, "--maxclients", "1") as server, socket.create_connection((HOST, server.port)) as first:
        first.sendall(b"PING\r\n")
        first.recv(64)
        yield server.port, PLAIN


@contextlib.contextmanager
def unsaved(folder: Path) -> Iterator[tuple[int, str]]:
    """A Redis that could not save its data."""
    with RedisWith(folder, "--save", "3600 1") as server, redis.Redis(port=server.port) as client:
        client.set("key", "value")
        (folder / "dump.rdb").mkdir()  # a file cannot replace it
        client.bgsave()
        while client.info("persistence")["rdb_last_bgsave_status"] != "err":
            time.sleep(0.02)
        yield server.port, PLAIN


#: States in which Redis refuses commands, and one in which it does not.
STATES: Final[dict[str, State]] = {
    "as usual": with_settings(),
    "out of memory": with_settings("--maxmemory", "1mb", before=(("CONFIG", "SET", "maxmemory", "1"),)),
    "a replica": with_settings(before=(("REPLICAOF", HOST, "1"),)),
    "a replica without its master": with_settings(
        "--replica-serve-stale-data", "no", before=(("REPLICAOF", HOST, "1"),)
    ),
    "wants a password": with_settings(before=(("CONFIG", "SET", "requirepass", "secret"),)),
    "another password": with_settings(
        url="redis://:guess@127.0.0.1:{port}/0", before=(("CONFIG", "SET", "requirepass", "secret"),)
    ),
    "a user without rights": with_settings(
        url="redis://reader:known@127.0.0.1:{port}/0",
        before=(("ACL", "SETUSER", "reader", "on", ">known", "+ping", "+client"),),
    ),
    "loading": loading,
    "busy": busy,
    "full of clients": full_of_clients,
    "unsaved": unsaved,
}


class Relay:
    """Records the commands to a server and its responses; a command is sent after the response to the one before."""

    def __init__(self, port: int) -> None:
        self.answers: dict[str, str] = {}
        self._port = port
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError), socket.create_connection((HOST, self._port)) as server:
                self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        if select.select([server], [], [], _GREETS)[0]:
            self._note(CONNECTED, said := server.recv(1 << 16))
            client.sendall(said)
            return
        asked = hiredis.Reader()
        while data := client.recv(1 << 16):
            asked.feed(data)
            while (command := asked.gets()) is not False:
                server.sendall(hiredis.pack_command(tuple(command)))
                self._note(command_name(command), said := _reply(server))
                client.sendall(said)

    def _note(self, name: str, said: bytes) -> None:
        self.answers[name] = re.sub(rb"(id\r\n:)\d+", rb"\g<1>1", said).decode("latin-1")


def _reply(server: socket.socket) -> bytes:
    reader, said = hiredis.Reader(), b""
    while reader.gets() is False:
        if not (data := server.recv(1 << 16)):
            raise ConnectionResetError("it ends in the middle of an answer")
        reader.feed(data)
        said += data
    return said


def record(state: State) -> dict[str, Any]:
    """The results of the stores in a state."""
    with tempfile.TemporaryDirectory() as folder, state(Path(folder)) as (port, url):
        relay = Relay(port)
        there = url.format(port=relay.port)
        outcomes = {
            "client": by_client(there),
            "async client": asyncio.run(by_async_client(there)),
            "blocking connection": asyncio.run(by_async_client(there, READ)),
        }
        relay.close()
        return {"url": url, "answers": dict(sorted(relay.answers.items())), "outcomes": outcomes}


def main() -> None:
    """Record all of them."""
    states = {name: record(state) for name, state in STATES.items()}
    server = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    (found,) = re.findall(r"v=([\d.]+)", server)
    versions = {"redis-server": found, **{name: version(name) for name in ("redis", "hiredis")}}
    text = json.dumps({"versions": versions, "states": states}, indent=2)
    PATH.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
