"""What disk files must know of the request that is served: the transform that a PUT asks for, and whether it copies.

The proxy says in system metadata (``sysmeta.NODE``) what storage nodes shall do to an object.  The bytes of replication
belong to no tenant and have the I/O level of replication.  SSYNC makes its requests below all paste filters, so only
the object server's own methods see every request: GET and PUT note this context for the time of the call, and whoever
makes a disk file meanwhile takes it from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import REPLICATION_FLOW, Flow
from sluice_middleware.wsgi import sysmeta

REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"


class RequestedTransform(NamedTuple):
    """A PUT's ``value`` of the intent header, and the type that its filters may ask for."""

    value: str
    content_type: str | None = None


class RequestContext(NamedTuple):
    """``replication_flow`` is the flow of copies between storage nodes, None for what clients want."""

    transform: RequestedTransform | None = None
    replication_flow: Flow | None = None


@dataclass(frozen=True, slots=True)
class TransformStep:
    """One filter that is wanted: keyword, version of the proxy's, parameters."""

    keyword: str
    version: int
    params: Mapping[str, Any]


#: The one that most requests have.
OF_CLIENTS: Final = RequestContext()
_current: ContextVar[RequestContext] = ContextVar("sluice_request", default=OF_CLIENTS)


#: Returns the context of the request that is served in this thread of control.
current_request: Final = _current.get


def requested_context(env: Mapping[str, Any]) -> RequestContext:
    """What a request says of itself."""
    value = env.get(sysmeta.NODE_ENV) if env["REQUEST_METHOD"] == "PUT" else None
    transform = RequestedTransform(value, env.get("CONTENT_TYPE")) if value else None
    return RequestContext(transform, REPLICATION_FLOW if REPLICATION_ENV in env else None)


@contextmanager
def request_scope(context: RequestContext) -> Iterator[None]:
    """While a request is served; requests that it makes inside have their own."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def parse_steps(value: str) -> tuple[TransformStep, ...]:
    """The steps that an intent names, in running order.

    :raises DecodeError: when it names none
    """
    try:
        steps = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"object metadata `{sysmeta.NODE}` is not JSON", value.encode()) from error
    if not isinstance(steps, list) or not steps:
        raise DecodeError(f"object metadata `{sysmeta.NODE}` names no filters", value.encode())
    return tuple(_step(one, value) for one in steps)


def _step(step: Any, value: str) -> TransformStep:
    match step:
        case {"f": str(keyword), "v": int(version)} if isinstance(step.get("p", {}), dict):
            return TransformStep(keyword, version, step.get("p", {}))
    raise DecodeError(f"object metadata `{sysmeta.NODE}` holds no filter: `{step!r}`", value.encode())
