"""What each worker process counts; ``sluice_controller.api.prometheus.cluster`` shows it.

Counted in files that all workers share, where ``PROMETHEUS_MULTIPROC_DIR`` is set before this is imported
(``sluice_controller.app.server`` does, before it forks), else in memory.
"""

from __future__ import annotations

from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from sluice_core.errors import DecodeError, PeerError
from sluice_core.store.operation import Operation
from sluice_core.store.store import Store

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})

T = TypeVar("T")

OWN: Final = CollectorRegistry()
REQUESTS: Final = Counter("sluice_api_requests", "answers given", ["method", "route", "status"], registry=OWN)
SECONDS: Final = Histogram(
    "sluice_api_request_seconds",
    "time that answers took",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
    registry=OWN,
)
REDIS_ERRORS: Final = Counter("sluice_redis_errors", "commands that Redis did not answer", registry=OWN)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """One answer; ``route`` is that of the call, not the path of the request."""
    known = method if method in _METHODS else "other"
    REQUESTS.labels(known, route, str(status)).inc()
    SECONDS.labels(known, route).observe(seconds)


class CountedStore(Store):
    """A store whose faults are counted."""

    def run(self, operation: Operation[T]) -> T:
        try:
            return super().run(operation)
        except DecodeError:
            raise
        except PeerError:
            REDIS_ERRORS.inc()
            raise
