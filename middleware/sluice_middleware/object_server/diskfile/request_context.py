"""The parts of a request that disk files need: the transform that a PUT requests, and whether the request is a copy.

The proxy names in system metadata (``sysmeta.NODE``) the transform that storage nodes apply to an object.  The bytes of
replication belong to no tenant and have the I/O level of replication.  SSYNC makes its requests below all paste
filters, so only the object server's own methods see every request: GET and PUT set this context for the time of the
call, and disk files that are created meanwhile read it.
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
from sluice_objects.protocol.stamps import Stamp

REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"


class RequestedTransform(NamedTuple):
    """A PUT's ``value`` of the intent header, and the content type that its filters may need."""

    value: str
    content_type: str | None = None


@dataclass(slots=True)
class StateWrite:
    """A home stores a state.

    :param stored: whether the disk file has it, and the voter recorded that
    """

    stamp: Stamp
    stored: bool = False


class RequestContext(NamedTuple):
    """
    :param replication_flow: the flow of copies between storage nodes, None for requests of clients
    :param copied: the request brings files that another node has
    :param state: of a home's request
    """

    transform: RequestedTransform | None = None
    replication_flow: Flow | None = None
    copied: bool = False
    state: StateWrite | None = None


@dataclass(frozen=True, slots=True)
class TransformStep:
    """One requested filter: keyword, the proxy's version, parameters."""

    keyword: str
    version: int
    params: Mapping[str, Any]


#: The context of most requests.
OF_CLIENTS: Final = RequestContext()
_current: ContextVar[RequestContext] = ContextVar("sluice_request", default=OF_CLIENTS)


#: Returns the context of the request that this green thread or thread serves.
current_request: Final = _current.get


def requested_context(env: Mapping[str, Any]) -> RequestContext:
    """The context that a request's headers describe."""
    value = env.get(sysmeta.NODE_ENV) if env["REQUEST_METHOD"] == "PUT" else None
    transform = RequestedTransform(value, env.get("CONTENT_TYPE")) if value else None
    copied = REPLICATION_ENV in env
    return RequestContext(transform, REPLICATION_FLOW if copied else None, copied)


@contextmanager
def request_scope(context: RequestContext) -> Iterator[None]:
    """Context of a request that is served; requests that it makes inside have their own."""
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
