"""Sub-requests of request filters, and whether Swift would accept a client's request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sluice_core.errors import SluiceError
from sluice_filters.visits import Headers, Reply
from sluice_middleware.swift.proxy_api import (
    POLICIES,
    REPL_POLICY,
    Request,
    drain_and_close,
    get_container_info,
    make_pre_authed_env,
)
from sluice_middleware.wsgi.backend_headers import SOURCE
from sluice_middleware.wsgi.inputs import IterableInput
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse
from sluice_middleware.wsgi.visit_adapters import set_headers

Path = tuple[str, str, str] | tuple[str, str]
#: Answers an object request on the object as clients see it.
Handler = Callable[[Env, tuple[str, str, str]], UpstreamResponse]

_WRITING: Final = frozenset({"PUT", "POST", "DELETE"})
_RESERVED: Final = "HTTP_X_BACKEND_ALLOW_RESERVED_NAMES"


def authorize(app: App, env: Env) -> Reply | None:
    """Return Swift's refusal of the request, None when it may pass; as Swift's proxy, check first without the ACL."""
    hook = env.get("swift.authorize")
    if hook is None:
        return None
    request = Request(env)
    if hook(request) is None:
        return None
    info = get_container_info(env, app, swift_source=SOURCE)
    request.acl = info["write_acl" if env["REQUEST_METHOD"] in _WRITING else "read_acl"]
    denial = hook(request)
    if denial is None:
        return None
    answer = UpstreamResponse(denial, env)
    return Reply(answer.status, Headers(answer.headers), answer.body)


def would_be_accepted(app: App, env: Env) -> bool:
    """Whether Swift would accept an upload: the client is authorized and the container exists."""
    denial = authorize(app, env)
    if denial is not None:
        drain_and_close(denial.body)
        return False
    return 200 <= int(get_container_info(env, app, swift_source=SOURCE)["status"] or 0) < 300


def is_replicated(app: App, env: Env) -> bool:
    """Whether each storage node of the object stores it whole."""
    policy = POLICIES.get_by_index(get_container_info(env, app, swift_source=SOURCE)["storage_policy"])
    return policy is not None and bool(policy.policy_type == REPL_POLICY)


def send_subrequest(
    app: App,
    handler: Handler,
    client_env: Env,
    client_target: tuple[str, str, str],
    method: str,
    path: Path | None = None,
    headers: Mapping[str, str] | None = None,
    body: Iterable[bytes] | None = None,
    query: str = "",
    stored: bool = False,
) -> Reply:
    """``Call.send`` of a visit: a request that starts below it.

    :param app: answers requests for containers and for objects as they are stored
    :param handler: answers requests for plain objects, without the request filters that saw the request already
    :param client_env: the client's request for ``client_target``
    """
    target = path or client_target
    env = _sub_environment(client_env, method, target, headers or {}, body, query)
    given = env["wsgi.input"]
    try:
        if stored:
            env["swift.content_type_overridden"] = True  # the written type is the one that Swift had stored
        if stored or len(target) == 2:
            answer = UpstreamResponse(app, env)
        else:
            answer = handler(env, target)
    except SluiceError as error:
        return Reply("503 Service Unavailable", Headers(), [f"sluice: {error}\n".encode()])
    finally:
        given.close()
    return Reply(answer.status, Headers(answer.headers), answer.body)


def _sub_environment(
    client_env: Env, method: str, target: Path, headers: Mapping[str, str], body: Iterable[bytes] | None, query: str
) -> Env:
    path = "/v1/" + "/".join(target)
    wire = path.encode("utf-8", "surrogateescape").decode("latin-1")
    env: Env = make_pre_authed_env(
        client_env, method, wire, agent="%(orig)s Sluice", query_string=query, swift_source=SOURCE
    )
    set_headers(env, headers)
    if _RESERVED in client_env:
        env[_RESERVED] = client_env[_RESERVED]
    env["wsgi.input"] = IterableInput(() if body is None else body)
    if body is None:
        env["CONTENT_LENGTH"] = "0"
    elif "CONTENT_LENGTH" not in env:
        env["HTTP_TRANSFER_ENCODING"] = "chunked"
    return env
