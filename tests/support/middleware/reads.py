"""Test filters that change the content that is read, and a storage node behind the stack of ``testing``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter
from sluice_filters.api import BadParameter, Filter, Hint, Stream
from sluice_middleware.object_server.middleware import StorageMiddleware
from sluice_middleware.testing import FixedPolicies, ProxyStack
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.worker_context import OPTIONS, WorkerContext

Env = dict[str, Any]


def _info(keyword: str, stage: int, *parameters: Parameter) -> ActionInfo:
    return ActionInfo(
        keyword,
        FILTER,
        "a toy",
        parameters,
        places=(PROXY, STORAGE_NODE),
        stage=stage,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
    )


class _Fold(Stream):
    def feed(self, data: bytes) -> bytes:
        return bytes(data).upper()

    def finish(self) -> bytes:
        return b"THE END"


class Upper(Filter):
    """Upper case, and a text at the end; records its hints."""

    info: ClassVar[ActionInfo] = _info("upper", 200)
    hints: ClassVar[list[Hint]] = []

    def reader(self, hint: Hint) -> Stream:
        self.hints.append(hint)
        return _Fold()


class _Marking(Stream):
    word = b"mark:"

    def feed(self, data: bytes) -> bytes:
        word, self.word = self.word, b""
        return word + data


class Mark(Filter):
    """Puts a text before the content; nearer to the client than the others."""

    info: ClassVar[ActionInfo] = _info("mark", 100)

    def reader(self, hint: Hint) -> Stream:
        return _Marking()


class _Piece(Stream):
    """The first ``length`` bytes, and a full stop."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        out = data[: self._left]
        self._left -= len(out)
        self.done = not self._left
        return out

    def finish(self) -> bytes:
        return b"."


class Cut(Filter):
    """Requested by a header, ``X-Cut: start+length``; knows which bytes it needs."""

    info: ClassVar[ActionInfo] = _info("cut", 200, Parameter("most", "int", "bytes at most", default=1000))
    asks: ClassVar[tuple[str, ...]] = ("X-Cut", "X-Other")

    def reads(self, hint: Hint) -> bool:
        return "X-Cut" in hint.asked

    def span(self, hint: Hint) -> tuple[int, int | None]:
        return self._wish(hint)[0], None

    def reader(self, hint: Hint) -> Stream:
        return _Piece(self._wish(hint)[1])

    def _wish(self, hint: Hint) -> tuple[int, int]:
        start, _, length = hint.asked["X-Cut"].partition("+")
        if not start.isdigit() or not length.isdigit():
            raise BadParameter(f"`X-Cut` is `{hint.asked['X-Cut']}`, expected start+length")
        return int(start), min(int(length), int(self.params["most"] or 0))


class Node:
    """An object server: the fake Swift behind the storage middleware, as Swift's proxy uses it."""

    def __init__(self, stand: ProxyStack, folder: Path, *filters: type[Filter]) -> None:
        options: dict[str, Any] = {one.name: one.default for one in OPTIONS} | {"snapshot_dir": str(folder / "none")}
        self.context = WorkerContext(options, stand.log)
        self.context.filters.update({one.info.keyword: one for one in filters})
        self.context.lookup.rebuild()
        self.context.started = True
        self.set_policies(FixedPolicies())
        self.swift = stand.swift
        self.middleware = StorageMiddleware(self._server, self.context)
        #: Status and headers of each answer.
        self.answers: list[tuple[str, dict[str, str]]] = []
        stand.proxy.handler.app = self

    def set_policies(self, fixed: Any) -> None:
        """Set the policies of the node's own snapshot."""
        self.context.lookup._reader = fixed

    def __call__(self, env: Env, start_response: Any) -> Iterable[bytes]:
        """As Swift's proxy: objects are on a device, containers and accounts are not."""
        if env["PATH_INFO"].count("/") < 4:
            return self.swift(env, start_response)
        env = {**env, "PATH_INFO": "/sda1/7" + env["PATH_INFO"].removeprefix("/v1")}

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            self.answers.append((status, dict(headers)))
            return start_response(status, headers, exc_info)

        return self.middleware(env, start)

    def _server(self, env: Env, start_response: Any) -> Iterable[bytes]:
        return self.swift({**env, "PATH_INFO": "/v1/" + env["PATH_INFO"].split("/", 3)[3]}, start_response)

    @property
    def ran(self) -> bool:
        """Whether the last response says that filters ran here."""
        return self.answers[-1][1].get(sysmeta.READ) == "done"
