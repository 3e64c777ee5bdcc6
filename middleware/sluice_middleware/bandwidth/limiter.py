"""Bodies that pay before they pass: downloads to the client side, uploads from it, on a proxy and on an object server.

Every byte is counted on both; where nothing else is said it pays as well.  Object servers only count uploads: bytes
that they hold back lie in the proxy's buffers until Swift's proxy gives the object server up.

Bodies of errors are lists, stay lists and cost nothing.  Those of objects that are lists (out of the cache, of a
filter) stay lists while their flow is free; else they pay in pieces, as all others do.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import ANY_POLICY, GET, PUT, Flow
from sluice_core.resolve import Candidates
from sluice_middleware.bandwidth import agent_client
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.swift.proxy_api import POLICIES, close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.policy_lookup import PolicyLookup, Target, logical_object
from sluice_middleware.wsgi.response import Env, UpstreamResponse

Logger = logging.Logger | logging.LoggerAdapter[Any]

_POLICY_ENV: Final = "HTTP_X_BACKEND_STORAGE_POLICY_INDEX"
#: What daemons read and write for each other is nobody's bandwidth; what they send is counted by who sends it.
_REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"
#: Addresses that stand for all of a machine's.
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104
#: Pieces that a list is cut into, bytes.
_PIECE: Final = 64 * 1024
_NOTHING: Final = memoryview(b"")


class BandwidthLimiter:
    """One per worker; does nothing before :meth:`start`, which is told after the fork."""

    def __init__(
        self, agent_socket: str, side: str, lookup: PolicyLookup, logger: Logger, server: tuple[str, str] = ("", "")
    ) -> None:
        """
        :param agent_socket: empty when bandwidth is nobody's business
        :param side: ``proxy`` or ``storage_node``
        :param server: address and port of the object server, as configured
        """
        self._path = agent_socket
        self._side = side
        self._lookup = lookup
        self._logger = logger
        self._server = server
        self.client: CreditClient | None = None

    def start(self, env: Env) -> None:
        """Find the process' line to the agent; ``env`` is of a request that came to the server."""
        if self._path and self.client is None:
            self.client = agent_client.shared_client(self._path, self._side, self._address(env), self._logger)

    def _address(self, env: Env) -> str:
        if self._side == PROXY:
            return ""
        address, port = self._server
        if address in _ANY_ADDRESS:
            address = env.get("SERVER_NAME", "")
        return f"{address}:{port or env.get('SERVER_PORT', '')}"

    def throttle_download(
        self, env: Env, target: Target, answer: UpstreamResponse, candidates: Candidates | None = None
    ) -> Iterable[bytes]:
        """The body of an answer to a GET, which pays as it is taken; ``answer`` tells its length if it was a list.

        :param candidates: what may concern ``target``, when the caller has it
        """
        body = answer.body
        if self.client is None or answer.code not in (200, 206) or _REPLICATION_ENV in env:
            return body
        transfer = self._open(self.client, env, target, GET, candidates)
        if isinstance(body, list | tuple):
            size = sum(map(len, body))
            if transfer.free:
                transfer.acquire(size)
                transfer.close()
                return body
            if sysmeta.find_header(answer.headers, "Content-Length") is None:
                answer.headers = [*answer.headers, ("Content-Length", str(size))]  # as a server does for a list
            body = Rechunked(body)
        return ThrottledBody(body, transfer)

    def throttle_upload(
        self, env: Env, target: Target, candidates: Candidates | None = None
    ) -> ThrottledInput | Transfer | None:
        """Have the body of a PUT pay as it is read; to be closed when the PUT is answered.

        :param candidates: as of :meth:`download`
        """
        if self.client is None or _REPLICATION_ENV in env:
            return None
        if self._side == PROXY:
            env.setdefault("swift.infocache", {})  # whoever copies ``env`` will write into this one
        elif (progress := _progress(env)) is not None:
            transfer = self._open(self.client, env, target, PUT, candidates)
            transfer.count_from(progress)
            return transfer
        made = env["wsgi.input"] = ThrottledInput(env["wsgi.input"], self, env, target)
        return made

    def open_upload(self, env: Env, target: Target) -> Transfer:
        """The transfer of an upload, whose body is read now."""
        assert self.client is not None
        return self._open(self.client, env, target, PUT)

    def _open(
        self, client: CreditClient, env: Env, target: Target, method: str, candidates: Candidates | None = None
    ) -> Transfer:
        account, container, _ = logical_object(target)
        if candidates is None:
            candidates = self._lookup.candidates(target)
        policy = self._policy(env, target)
        flow = Flow(_text(account), method, policy, _text(container) if method in candidates.own_account else "")
        ceiling = 0.0
        if candidates.bounded:
            ceiling = candidates.ceiling(method, self._side, policy, client.policy_name(policy))
        if self._side == PROXY:
            return client.open(flow, ceiling=ceiling)
        device = env["PATH_INFO"].split("/", 2)[1]
        oid = _text(f"{target[1]}/{target[2]}")
        return client.open(flow, device, oid, _span(env.get("HTTP_RANGE")), method == GET, ceiling)

    def _policy(self, env: Env, target: Target) -> int:
        """The index of the storage policy: Swift notes it in the request as soon as it knows the container."""
        found: Any = env.get(_POLICY_ENV)
        if found is None and self._side == STORAGE_NODE:
            return 0
        if found is None:
            info = env.get("swift.infocache", {}).get(f"container/{target[0]}/{target[1]}") or {}
            found = info.get("storage_policy")
        try:
            return int(found)
        except (TypeError, ValueError):
            return ANY_POLICY if len(POLICIES) > 1 else 0


class ThrottledBody:
    """A body whose pieces pass when they are paid, in parts when many wait for a low rate."""

    __slots__ = ("_account", "_body", "_pay", "_pieces", "_rest", "_then", "_transfer")

    def __init__(self, body: Iterable[bytes], transfer: Transfer) -> None:
        self._body = body
        self._pieces = iter(body)
        self._transfer = transfer
        self._account = transfer.account
        self._pay = transfer.acquire_some
        #: What is not paid yet of a piece that was taken.
        self._rest: memoryview | None = None
        self._then: Callable[[], None] | None = None

    def passed(self) -> int:
        """Bytes that were given on until now."""
        return self._transfer.moved

    def on_close(self, ended: Callable[[], None]) -> None:
        """Have somebody else told when the request is over."""
        self._then = ended

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._rest is not None:
            return self._part(self._rest)
        piece = next(self._pieces)
        size = len(piece)
        if self._account.free:  # by far the most frequent
            self._transfer.moved += size
            return piece
        paid = self._pay(size)
        if paid == size:
            return piece
        self._rest = memoryview(piece)[paid:]
        return piece[:paid]

    def _part(self, rest: memoryview) -> bytes:
        paid = self._pay(len(rest))
        self._rest = rest[paid:] if paid < len(rest) else None
        return bytes(rest[:paid])

    def close(self) -> None:
        """The request is over, taken to the end or not."""
        self._transfer.close()
        if self._then is not None:
            self._then()
        close_if_possible(self._body)


class Rechunked:
    """The bytes of a list in pieces that are worth a payment of their own; closes it with itself."""

    __slots__ = ("_body",)

    def __init__(self, body: Sequence[bytes]) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._body:
            if len(piece) <= _PIECE:
                yield piece
            else:
                yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))

    def close(self) -> None:
        """The request is over."""
        close_if_possible(self._body)


class ThrottledInput:
    """``wsgi.input`` of an upload: what was read is paid before it is given on.

    Swift lets the request in before it reads, so the first read is when the transfer begins.  Who reads at most so
    many bytes gets fewer when many wait for a low rate, and the rest with the next reads.
    """

    __slots__ = ("_env", "_limiter", "_over", "_rest", "_source", "_target", "_transfer")

    def __init__(self, source: Any, limiter: BandwidthLimiter, env: Env, target: Target) -> None:
        self._source = source
        self._limiter = limiter
        self._env = env
        self._target = target
        self._transfer: Transfer | None = None
        self._over = False
        #: What is not paid yet of what was read.
        self._rest = _NOTHING

    def read(self, *args: Any) -> bytes:
        """As the wrapped input, or a part of that."""
        data: bytes
        transfer = self._transfer or self._begun()
        if not self._rest:
            data = self._source.read(*args)
            if data and transfer is not None and transfer.account.free:  # by far the most frequent
                transfer.moved += len(data)
                return data
        elif not _is_bounded(args):
            data = bytes(self._rest) + self._source.read(*args)
        else:
            data = bytes(self._rest[: args[0]])
            paid = self._paid_some(transfer, data, args)
            self._rest = self._rest[paid:]
            return data[:paid]
        if not _is_bounded(args):
            self._rest = _NOTHING
            self._paid(transfer, data, args)
            return data
        paid = self._paid_some(transfer, data, args)
        self._rest = memoryview(data)[paid:]
        return data[:paid]

    def readline(self, *args: Any) -> bytes:
        """As the wrapped input."""
        transfer = self._begun()
        data: bytes = self._line(*args) if self._rest else self._source.readline(*args)
        self._paid(transfer, data, args)
        return data

    def close(self) -> None:
        """The request was answered: no more will be read."""
        self._over = True
        if self._transfer is not None:
            self._transfer.close()

    def _begun(self) -> Transfer | None:
        if self._transfer is None and not self._over:
            self._transfer = self._limiter.open_upload(self._env, self._target)
        return self._transfer

    def _line(self, size: int | None = None) -> bytes:
        """The next line, which begins in the rest."""
        most = -1 if size is None else size
        client = io.BytesIO(self._rest).readline(most)
        self._rest = self._rest[len(client) :]
        if self._rest or client.endswith(b"\n") or len(client) == most:
            return client
        more: bytes = self._source.readline(*(() if most < 0 else (most - len(client),)))
        return client + more

    def _paid(self, transfer: Transfer | None, data: bytes, args: tuple[Any, ...]) -> None:
        if data and transfer is not None:
            transfer.acquire(len(data))
        elif not data and args[:1] != (0,):
            self.close()

    def _paid_some(self, transfer: Transfer | None, data: bytes, args: tuple[Any, ...]) -> int:
        if data and transfer is not None:
            return transfer.acquire_some(len(data))
        self._paid(None, data, args)
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _progress(env: Env) -> Callable[[], int] | None:
    """What tells how many bytes of an upload were read, where the server's own input does that (eventlet's)."""
    source = env["wsgi.input"]
    if "HTTP_TRANSFER_ENCODING" in env or getattr(source, "position", None) != 0:
        return None
    return lambda: int(source.position)


def _is_bounded(args: tuple[Any, ...]) -> bool:
    """Whether who reads says how many bytes it wants at most."""
    return bool(args) and args[0] is not None and args[0] >= 0


def _span(header: str | None) -> str:
    """``0-end``, or the part that a ``Range`` header asks for."""
    span = (header or "").strip().lower().removeprefix("bytes=") or "0-end"
    return f"{span}end" if span.endswith("-") else span


def _text(name: str) -> str:
    """A name out of a path that can travel, whatever bytes stood there."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
