"""Redis' responses when it refuses commands, recorded by :mod:`.record_redis_answers`.

A *state* is a Redis that is full, loads its data, needs a password, ….  :func:`answering` is a server that answers as
that Redis did, command by command.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import hiredis

from sluice_aio.base.ports import HOST
from sluice_core.errors import PeerError
from sluice_core.store.operation import Operation
from sluice_core.store.store import AsyncStore, Store

PATH: Final = Path(__file__).with_name("redis_answers.json")
#: The response to a new connection.
CONNECTED: Final = "(connected)"
TIMEOUT: Final = 5.0

#: The commands: a write by the client for threads, the same for asyncio, and reads over a blocking connection.
WRITE: Final = Operation((("SET", "key", "value"),), lambda replies: replies[0])
READ: Final = Operation(
    (("GET", "key"), ("XREAD", "BLOCK", 1, "STREAMS", "stream", "0")), lambda replies: replies, blocking=True
)


def by_client(url: str) -> str:
    """The result of a write of the client for threads."""
    store = Store(url, timeout=TIMEOUT)
    try:
        return _told(store.run(WRITE))
    except PeerError as error:
        return _told(error)
    finally:
        store.close()


async def by_async_client(url: str, operation: Operation[Any] = WRITE) -> str:
    """The result of a write of the client for asyncio."""
    store = AsyncStore(url, timeout=TIMEOUT)
    try:
        return _told(await store.run(operation))
    except PeerError as error:
        return _told(error)
    finally:
        await store.close()


def _told(outcome: Any) -> str:
    """An outcome without the address; errors with the class of the cause."""
    if not isinstance(outcome, PeerError):
        return "done"
    return f"{type(outcome.__cause__).__name__}: {str(outcome).partition('`: ')[2]}"


def command_name(command: Sequence[bytes]) -> str:
    """The identity of a command: its first word, and the second of commands with subcommands."""
    words = [one.decode() for one in command[:2]]
    return " ".join(words if words[0] in ("CLIENT", "SCRIPT") else words[:1])


def recorded() -> Mapping[str, Any]:
    """State → ``url`` (with ``{port}``), ``answers`` (command → bytes as text) and ``outcomes`` of each access."""
    states: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))["states"]
    return states


def redis_away(words: str = "Error 111 connecting to 127.0.0.1:1. Connection refused.") -> PeerError:
    """The error of a store whose Redis does not listen, in redis-py's words."""
    return PeerError(f"redis at `127.0.0.1:1`: {words}")


@contextmanager
def answering(state: str) -> Iterator[str]:
    """A server that answers as the Redis of ``state`` did, while it is entered; its URL."""
    found = recorded()[state]
    answers = {name: text.encode("latin-1") for name, text in found["answers"].items()}
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=_serve, args=(listener, answers), daemon=True)
        thread.start()
        yield found["url"].format(port=port)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(TIMEOUT)


def _serve(listener: socket.socket, answers: Mapping[str, bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            if CONNECTED in answers:
                connection.sendall(answers[CONNECTED])
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass  # closing with unread input would be a reset, and might lose the response
                continue
            _answer(connection, answers)


def _answer(connection: socket.socket, answers: Mapping[str, bytes]) -> None:
    reader = hiredis.Reader()
    while data := connection.recv(1 << 16):
        reader.feed(data)
        while (command := reader.gets()) is not False:
            connection.sendall(answers[command_name(command)])
