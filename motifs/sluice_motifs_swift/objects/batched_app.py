"""Swift's proxy application, with HEADs and contractions of many objects in one request to each object server.

Theory of operation

* HEADs of the newest replica that arrive while others are running are sent together (``shared_calls``) to the
  primary servers of their objects, and so are contractions (PUTs of no bytes).
* A HEAD is answered when all primary servers have the same version.  Otherwise the proxy answers the request.
  A version that only handoffs have, written while all primary servers were unreachable, is not seen, as no GET
  sees it: it is newer than any version stored here, and wins when replication moves it.  Code that must know it uses an
  application without batches (``references``).
* A contraction is stored when a majority has stored it; Swift replicates it from any server in any case, and
  the next HEAD shows it.  It fails when one server has something newer.
* The rows of containers are not written: a contracted object is listed as before, with the same time, size
  and digest.
* The proxy handles erasure-coded policies, rings whose part power grows and objects with silent servers.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPException
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_middleware.motifs.object_views import UNHURRIED
from sluice_middleware.swift import green
from sluice_middleware.swift.internal_api import POLICIES, Timeout, http_connect_raw
from sluice_middleware.swift.object_batches import (
    METHOD,
    MOST,
    ObjectAnswer,
    ObjectRequest,
    decode_answers,
    encode_requests,
)
from sluice_middleware.swift.proxy_api import REPL_POLICY, Request, get_container_info
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.internal_client import cache_of, final_app
from sluice_middleware.wsgi.policy_lookup import decoded_path
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse
from sluice_motifs_swift.objects.shared_calls import GroupedCalls

log = logging.getLogger(__name__)

Server = tuple[str, int]
#: Sends a batch to a server; raises OSError, HTTPException, Timeout or DecodeError when it fails.
Send = Callable[[Server, Sequence[ObjectRequest], float], Sequence[ObjectAnswer]]
#: Policies of containers.
_Policies = dict[tuple[str, str], int | None]

#: Seconds to reach a server, to get its response to HEADs and to contractions, and of a pause for a silent server.
_CONNECT_TIMEOUT: Final = 0.5
_HEAD_TIMEOUT: Final = 2.0
_CONTRACT_TIMEOUT: Final = 5.0
_SILENT: Final = 60.0
#: Seconds in which HEADs are gathered for which clients wait, and in which others, and contractions, are.
_AT_ONCE: Final = 0.0
_GATHERS: Final = 0.1
#: Seconds for which a contraction may wait for others: with the time of an object server it is within its leases.
_WAITS: Final = 2.0
_DUE: Final = "sluice.contraction_due"
_LATE: Final = "503 Service Unavailable: it waited too long for other contractions"
_TIMES: Final = ("X-Backend-Timestamp", "X-Backend-Data-Timestamp")


class BatchedApp:
    """
    :param app: Swift's proxy application, as of ``load_app``
    """

    def __init__(self, app: App, send: Send | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._final = final_app(app)
        self._cache = cache_of(app)
        self._send = send or send_batch
        self._clock = clock
        self._silent: dict[Server, float] = {}
        start, pause = green.start_green, green.pause
        self._heads = GroupedCalls(self._head, MOST, _AT_ONCE, start, pause)
        self._unhurried_heads = GroupedCalls(self._head, MOST, _GATHERS, start, pause)
        self._contractions = GroupedCalls(self._contract, MOST, _GATHERS, start, pause)

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if env["REQUEST_METHOD"] == "HEAD" and "HTTP_X_NEWEST" in env:
            answer = (self._unhurried_heads if UNHURRIED in env else self._heads)(env)
        elif env["REQUEST_METHOD"] == "PUT" and sysmeta.CONTRACTED_ENV in env:
            answer = self._contractions({**env, _DUE: self._clock() + _WAITS})
        else:
            answer = None
        if answer is None:
            return self._app(env, start_response)
        start_response(answer.status, answer.headers, answer.exc_info)
        return answer.body

    def _head(self, envs: Sequence[Env]) -> Sequence[UpstreamResponse | None]:
        return [_newest(answers, expected) for answers, expected in self._ask(envs, _HEAD_TIMEOUT)]

    def _contract(self, envs: Sequence[Env]) -> Sequence[UpstreamResponse | None]:
        late = [env[_DUE] < self._clock() for env in envs]
        asked = iter(self._ask([env for env, one in zip(envs, late, strict=True) if not one], _CONTRACT_TIMEOUT))
        return [
            UpstreamResponse.build(_LATE, [("Content-Length", "0")], ()) if one else _stored(*next(asked))
            for one in late
        ]

    def _ask(self, envs: Sequence[Env], patience: float) -> Sequence[tuple[Sequence[ObjectAnswer], int]]:
        """The responses to each request, and their expected number; 0 for requests that are left to the proxy."""
        policies: _Policies = {}
        sent = [self._requests(env, policies) for env in envs]
        by_server: dict[Server, list[tuple[int, ObjectRequest]]] = defaultdict(list)
        for number, requests in enumerate(sent):
            for server, request in requests:
                by_server[server].append((number, request))
        received: list[list[ObjectAnswer]] = [[] for _ in envs]

        def ask(server: Server) -> None:
            numbers, requests = zip(*by_server[server], strict=True)
            try:
                answers = self._send(server, requests, patience)
            except (OSError, HTTPException, Timeout, DecodeError) as error:
                self._silent[server] = self._clock() + _SILENT
                log.info("%s:%d gets no batches for a while: %s", *server, error)
                return
            for number, answer in zip(numbers, answers, strict=True):
                received[number].append(answer)

        green.map_concurrently(ask, list(by_server), len(by_server) or 1)
        return list(zip(received, map(len, sent), strict=True))

    def _requests(self, env: Env, policies: _Policies) -> Sequence[tuple[Server, ObjectRequest]]:
        """The requests to the primary servers; none when the request is left to the proxy."""
        account, container, name = decoded_path(env).split("/", 4)[2:]
        if (account, container) not in policies:
            policies[account, container] = self._policy(env)
        policy = policies[account, container]
        if policy is None:
            return []
        part, nodes = self._final.get_object_ring(policy).get_nodes(account, container, name)
        servers = [(one["ip"], one["port"]) for one in nodes]
        if any(self._silent.get(server, 0.0) > self._clock() for server in servers):
            return []
        stored = None
        if env["REQUEST_METHOD"] == "PUT":
            stored = {name.lower(): value for name, value in Request(env).headers.items()}
        return [
            (server, ObjectRequest(one["device"], part, policy, account, container, name, stored))
            for server, one in zip(servers, nodes, strict=True)
        ]

    def _policy(self, env: Env) -> int | None:
        """The index of a container's policy; None when its objects are left to the proxy."""
        asked = {**env, "swift.cache": self._cache, "swift.infocache": {}}
        info = get_container_info(asked, self._app, swift_source=env.get("swift.source"))
        policy = POLICIES.get_by_index(info["storage_policy"]) if info["status"] // 100 == 2 else None
        if policy is None or policy.policy_type != REPL_POLICY:
            return None
        ring = self._final.get_object_ring(int(policy))
        return None if ring.next_part_power is not None else int(policy)


def _newest(answers: Sequence[ObjectAnswer], expected: int) -> UpstreamResponse | None:
    """The object as all servers have it, if they agree."""
    if not answers or len(answers) < expected or any(one.status != 200 for one in answers):
        return None
    versions = {tuple(sysmeta.find_header(one.headers, name) for name in _TIMES) for one in answers}
    return UpstreamResponse.build("200 OK", list(answers[0].headers), ()) if len(versions) == 1 else None


def _stored(answers: Sequence[ObjectAnswer], expected: int) -> UpstreamResponse | None:
    """The response that the proxy would give."""
    if not expected:
        return None
    taken = sum(one.status == 201 for one in answers)
    if any(one.status == 409 for one in answers):
        status = "202 Accepted"
    elif taken > expected // 2:
        status = "201 Created"
    else:
        status = f"503 Service Unavailable: {taken} of {expected} object servers took it"
    return UpstreamResponse.build(status, [("Content-Length", "0")], ())


def send_batch(server: Server, requests: Sequence[ObjectRequest], patience: float) -> Sequence[ObjectAnswer]:
    """Send requests to an object server and return its responses.

    :param patience: seconds
    :raises OSError, HTTPException, Timeout, DecodeError: when that fails
    """
    body = encode_requests(requests)
    with Timeout(_CONNECT_TIMEOUT):
        connection = http_connect_raw(*server, METHOD, "/", headers={"Content-Length": str(len(body))})
    try:
        with Timeout(patience):
            connection.send(body)
            answer = connection.getresponse()
            content = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise DecodeError(f"it answers {answer.status} to a {METHOD}", content)
    return decode_answers(content, len(requests))
