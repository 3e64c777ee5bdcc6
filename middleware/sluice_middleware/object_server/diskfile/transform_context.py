"""Carries the transform that a PUT requests to the disk file that runs it.

The proxy says in system metadata (``sysmeta.NODE``) what storage nodes shall do to an object.  SSYNC makes its
requests below all paste filters, so only the object server's own ``__call__`` sees every PUT: it notes the
intent for the time of the call, and whoever makes a disk file meanwhile takes it from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_middleware.wsgi import sysmeta

_VARIABLE: Final = "HTTP_" + sysmeta.NODE.upper().replace("-", "_")


@dataclass(frozen=True, slots=True)
class RequestedTransform:
    """A PUT's ``value`` of the intent header, and the type that its filters may ask for."""

    value: str
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class TransformStep:
    """One filter that is wanted: keyword, version of the proxy's, parameters."""

    keyword: str
    version: int
    params: Mapping[str, Any]


_current: ContextVar[RequestedTransform | None] = ContextVar("sluice_intent", default=None)
_AS_IT_IS: Final = nullcontext()


def current_transform() -> RequestedTransform | None:
    """The transform of the PUT that is served in this context."""
    return _current.get()


def transform_scope(env: Mapping[str, Any]) -> AbstractContextManager[None]:
    """While a request is served; requests that it makes inside have their own."""
    value = env.get(_VARIABLE) if env["REQUEST_METHOD"] == "PUT" else None
    if not value and _current.get() is None:
        return _AS_IT_IS  # by far the most frequent
    return _serving(RequestedTransform(value, env.get("CONTENT_TYPE")) if value else None)


@contextmanager
def _serving(intent: RequestedTransform | None) -> Iterator[None]:
    token = _current.set(intent)
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


def _step(one: Any, value: str) -> TransformStep:
    match one:
        case {"f": str(keyword), "v": int(version)} if isinstance(one.get("p", {}), dict):
            return TransformStep(keyword, version, one.get("p", {}))
    raise DecodeError(f"object metadata `{sysmeta.NODE}` holds no filter: `{one!r}`", value.encode())
