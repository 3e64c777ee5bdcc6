"""Throttles the bodies of object requests on a proxy and on an object server.

Theory of operation.  Every byte of an upload or download is counted for its flow (account, method, storage policy,
and container where an objective names it).  On a proxy both directions are throttled: each piece of a body waits for
credit before it passes (:mod:`bodies`).  On an object server downloads are throttled and uploads are only counted:
bytes held back there would fill the proxy's buffers until Swift's proxy disconnected from the object server.

Bodies of errors are lists; they stay lists and are not charged.  Bodies of objects that are lists (from the cache or
from a filter) stay lists while their flow is unlimited; otherwise they pass in pieces, as all others do.

While no objective is in force on the node, a short body (:data:`SHORT`) is counted as a whole, before it passes, and
is not wrapped: most objects of a cluster are small, and a transfer costs more than their bytes.  :data:`SHORT` is
larger on an object server than on a proxy, since the proxy's buffers hold the bytes that an object server sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import ANY_POLICY, GET, PUT, Flow
from sluice_core.resolve import Candidates
from sluice_middleware.bandwidth import client_registry
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.bodies import PIECE, Rechunked, ThrottledBody, UploadInput, UploadMetrics
from sluice_middleware.bandwidth.wait_queue import Transfer
from sluice_middleware.log import Logger
from sluice_middleware.swift.proxy_api import POLICIES
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.policy_lookup import Target, content_length, logical_object
from sluice_middleware.wsgi.response import Env, UpstreamResponse

#: The largest body that is counted as a whole: one piece, and the bytes that a disk file reads in one step.
SHORT: Final[Mapping[str, int]] = {PROXY: PIECE, STORAGE_NODE: 1 << 20}
#: Flows that are kept.
_MOST: Final = 10_000
_POLICY_ENV: Final = "HTTP_X_BACKEND_STORAGE_POLICY_INDEX"
#: Object servers do not count the reads and writes of daemons; the sender counts the bytes that daemons send.
_REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"
#: Status codes of responses that carry an object's bytes.
_WITH_OBJECT: Final = ("200", "206")
#: The span of a whole object.
_ALL: Final = "0-end"
#: Addresses that stand for all addresses of a machine.
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104


class BandwidthLimiter:
    """The throttle of one worker; does nothing before :meth:`start`, which is called after the fork."""

    def __init__(self, agent_socket: str, side: str, logger: Logger, server: tuple[str, str] = ("", "")) -> None:
        """
        :param agent_socket: empty for no limits and no counting
        :param side: ``proxy`` or ``storage_node``
        :param server: address and port of the object server, as configured
        """
        self._path = agent_socket
        self._side = side
        self._of_node = side != PROXY
        self._short = SHORT[side]
        #: Account, method and policy as a request names it → flow.
        self._flows: dict[tuple[str, str, str | None], Flow] = {}
        self._logger = logger
        self._server = server
        self.client: CreditClient | None = None

    def start(self, env: Env) -> None:
        """Connect to the agent; ``env`` is a request that names the server's address."""
        if self._path and self.client is None:
            self.client = client_registry.shared_client(self._path, self._side, self._address(env), self._logger)

    def _address(self, env: Env) -> str:
        if not self._of_node:
            return ""
        address, port = self._server
        if address in _ANY_ADDRESS:
            address = env.get("SERVER_NAME", "")
        return f"{address}:{port or env.get('SERVER_PORT', '')}"

    def throttle_download(
        self, env: Env, target: Target, answer: UpstreamResponse, candidates: Candidates
    ) -> Iterable[bytes]:
        """The body of the response to a GET, throttled; a list body gets a ``Content-Length``, as a server would add.

        :param candidates: the policies' rules that may concern ``target``
        """
        body, client = answer.body, self.client
        if client is None or answer.status[:3] not in _WITH_OBJECT or (self._of_node and _REPLICATION_ENV in env):
            return body
        length = sysmeta.find_content_length(answer.headers)
        if length is not None and length <= self._short and self._count_whole(env, target, GET, candidates, length):
            return body
        transfer = self._open(client, env, target, GET, candidates)
        if isinstance(body, list | tuple):
            size = sum(map(len, body))
            if transfer.free:
                transfer.acquire(size)
                transfer.close()
                return body
            if length is None:
                answer.headers = [*answer.headers, ("Content-Length", str(size))]  # a WSGI server adds it for a list
            body = Rechunked(body)
        return ThrottledBody(body, transfer)

    def throttle_upload(
        self, env: Env, target: Target, candidates: Candidates, metrics: UploadMetrics | None = None
    ) -> UploadInput | Transfer | None:
        """Throttle or count the body of a PUT; close the returned object when the PUT is answered.

        :param candidates: as of :meth:`throttle_download`
        :param metrics: receives the events of the body as it is read, on a proxy
        """
        client = self.client
        if client is None or (self._of_node and _REPLICATION_ENV in env):
            if metrics is not None:
                env["wsgi.input"] = UploadInput(env["wsgi.input"], metrics=metrics)
            return None
        length = content_length(env)
        if not self._of_node:
            env.setdefault("swift.infocache", {})  # copies of ``env`` share this dictionary
        else:
            if length is not None and length <= self._short and self._count_whole(env, target, PUT, candidates, length):
                return None
            if (progress := _progress(env)) is not None:
                transfer = self._open(client, env, target, PUT, candidates)
                transfer.count_from(progress)
                return transfer
        open_transfer = partial(self._open_upload, client, env, target, candidates, length)
        throttled = env["wsgi.input"] = UploadInput(env["wsgi.input"], open_transfer, metrics)
        return throttled

    def _open_upload(
        self, client: CreditClient, env: Env, target: Target, candidates: Candidates, length: int | None
    ) -> Transfer | None:
        """Open the transfer of an upload; return None when all its bytes are counted now and pass without credit.

        :param length: of the header; 0 for the version of an object too, although bytes follow
        """
        if length and length <= self._short and self._count_whole(env, target, PUT, candidates, length):
            return None
        return self._open(client, env, target, PUT, candidates)

    def _count_whole(self, env: Env, target: Target, method: str, candidates: Candidates, size: int) -> bool:
        """Count a body of one piece before it passes; return False when an objective may limit it."""
        client = self.client
        if client is None or candidates.bounded or method in candidates.own_account:
            return False
        known = (target[0], method, env.get(_POLICY_ENV))
        flow = self._flows.get(known) or self._flow(known, env, target)
        if not self._of_node:
            return client.count(flow, size)
        oid = f"{target[1]}/{target[2]}"
        if not oid.isascii():
            oid = _text(oid)
        span = _span(env["HTTP_RANGE"]) if "HTTP_RANGE" in env else _ALL
        return client.count(flow, size, env["PATH_INFO"].split("/", 2)[1], oid, span, method == GET)

    def _flow(self, known: tuple[str, str, str | None], env: Env, target: Target) -> Flow:
        """The flow of an account, method and policy; remembered where the request names the policy."""
        account, method, policy = known
        flow = Flow(_text(account), method, self._policy(env, target), "")
        if policy is not None or self._of_node:
            if len(self._flows) >= _MOST:
                self._flows.clear()
            self._flows[known] = flow
        return flow

    def _open(self, client: CreditClient, env: Env, target: Target, method: str, candidates: Candidates) -> Transfer:
        account, container, _ = logical_object(target)
        policy = self._policy(env, target)
        flow = Flow(_text(account), method, policy, _text(container) if method in candidates.own_account else "")
        ceiling = 0.0
        if candidates.bounded:
            ceiling = candidates.ceiling(method, self._side, policy, client.policy_name(policy))
        if not self._of_node:
            return client.open(flow, ceiling=ceiling)
        device = env["PATH_INFO"].split("/", 2)[1]
        oid = _text(f"{target[1]}/{target[2]}")
        span = _span(env["HTTP_RANGE"]) if "HTTP_RANGE" in env else _ALL
        return client.open(flow, device, oid, span, method == GET, ceiling)

    def _policy(self, env: Env, target: Target) -> int:
        """The index of the storage policy: Swift notes it in the request once it knows the container."""
        index: Any = env.get(_POLICY_ENV)
        if index is None and self._of_node:
            return 0
        if index is None:
            info = env.get("swift.infocache", {}).get(f"container/{target[0]}/{target[1]}") or {}
            index = info.get("storage_policy")
        try:
            return int(index)
        except (TypeError, ValueError):
            return ANY_POLICY if len(POLICIES) > 1 else 0


def _progress(env: Env) -> Callable[[], int] | None:
    """Return the function that returns the number of bytes read of an upload, where the server's own input counts them
    (eventlet's); else None.
    """
    source = env["wsgi.input"]
    if "HTTP_TRANSFER_ENCODING" in env or getattr(source, "position", None) != 0:
        return None
    return lambda: int(source.position)


def _span(header: str) -> str:
    """The part of an object that a ``Range`` header requests."""
    span = header.strip().lower().removeprefix("bytes=") or _ALL
    return f"{span}end" if span.endswith("-") else span


def _text(name: str) -> str:
    """A name from a path as text that messages can carry, for any bytes."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
