"""Whether a request is replication: its bytes belong to no tenant and have the I/O level of replication.

SSYNC makes its requests below all paste filters, so that only the object server's own ``__call__`` sees them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

from sluice_core.messages.bandwidth import REPLICATION_FLOW, Flow

_REPLICATION_ENV: Final = "HTTP_X_BACKEND_REPLICATION"

_current: ContextVar[bool] = ContextVar("sluice_copies", default=False)
_AS_IT_IS: Final = nullcontext()


def current_flow() -> Flow | None:
    """The flow of copies while one is served in this thread of control; None for what clients want."""
    return REPLICATION_FLOW if _current.get() else None


def replication_scope(env: Mapping[str, Any]) -> AbstractContextManager[None]:
    """While a request is served; requests that it makes inside say themselves what they are."""
    copies = _REPLICATION_ENV in env
    return _AS_IT_IS if copies == _current.get() else _serving(copies)


@contextmanager
def _serving(copies: bool) -> Iterator[None]:
    token = _current.set(copies)
    try:
        yield
    finally:
        _current.reset(token)
