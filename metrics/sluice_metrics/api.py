"""The metric contract.

A metric is one running total (or, with ``gauge``, one level) per tenant and container, counted
inside a Swift worker from the events of a request's life.  The host calls, for each object
request and each target it concerns, in this order:

    admitted(method)         once, when Swift has authorized the request: at the first read of an
                             upload's body, else when the answer starts (never for 401 and 403)
    received(method, size)   for each piece of a request body, size in bytes (plain, client side)
    sent(method, size)       for each piece of a response body, size in bytes (plain, client side)
    ended(method)            once for each admitted request, also when it was cut off

Each answers by how much the total grows.  Answers must depend on the arguments only; a method
that raises is counted and logged by the host, and the request goes on.
"""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import MetricInfo


class Metric:
    """Base of all metrics: counts nothing."""

    info: ClassVar[MetricInfo]
    #: True for a level (requests at work now): the value is reported as it stands, not as growth.
    gauge: ClassVar[bool] = False

    def admitted(self, method: str) -> float:
        """Swift let the request in."""
        return 0

    def received(self, method: str, size: int) -> float:
        """``size`` bytes came from the client."""
        return 0

    def sent(self, method: str, size: int) -> float:
        """``size`` bytes went to the client."""
        return 0

    def ended(self, method: str) -> float:
        """The request is over."""
        return 0
