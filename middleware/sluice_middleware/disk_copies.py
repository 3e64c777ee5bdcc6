"""Whether a request is a copy between storage nodes: its bytes are no tenant's, and have the priority of copies.

SSYNC makes its requests below all paste filters, so that only the object server's own ``__call__`` sees them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from sluice_core.bandwidth import COPIES, Flow

_REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"

_current: ContextVar[bool] = ContextVar("sluice_copies", default=False)


def current() -> Flow | None:
    """The flow of copies while one is served in this thread of control; None for what clients want."""
    return COPIES if _current.get() else None


@contextmanager
def serving(env: Mapping[str, Any]) -> Iterator[None]:
    """While a request is served; requests that it makes inside say themselves what they are."""
    token = _current.set(_REPLICATION_ENV in env)
    try:
        yield
    finally:
        _current.reset(token)
