"""The metric contract.

A metric is one running total (or, with ``gauge``, one level) per tenant and container, counted
inside a Swift worker from the events of a request's life.  The host calls, for each object
request and each of its targets, in this order:

    admitted(method)         once, when Swift has authorized the request: at the first read of an
                             upload's body, else when the answer starts (never for 401 and 403)
    received(method, size)   size bytes of a request body have come (plain, client side)
    sent(method, size)       size bytes of a response body were sent (plain, client side)
    ended(method)            once for each admitted request, also when it was cut off

The host reports bytes while a body passes, at least once a second and never twice; it chooses the portions.

Each method returns the growth of the total.  The result must depend on the arguments only.  The host counts and logs a
method that raises, and the request continues.

A metric with a ``sample_size`` samples uploads.  The host collects the first bytes (plain, before any filter) of one
upload in several, with an upper bound per second, and calls

    sampled(data)            amount and weight of these bytes

The metric's value is the mean ``sum of amounts / sum of weights`` over the last samples, at each level.  It is reported
for some minutes after the last sample.

A metric with ``mean`` is a mean over responses.  At the end of a response, complete or cut off, the host adds

    responded(response)      amount and weight of this response

and the metric's value in a window is ``sum of amounts / sum of weights`` of all workers and nodes.  A window without
weight has no value.  Responses with 401 and 403 are left out.  The host calls the method once for each
:class:`Response`, which is equal for most requests, and caches the answer.

A metric with a ``quantile`` is that quantile of the responses' durations in seconds.  It answers ``responded`` as a
mean does; the weight says how often a response counts, 0 for not at all, and the amount is not used.  Metrics that
inherit the same ``responded`` share their counts.

A metric whose ``info.granularities`` hold ``object`` is also counted for single objects: the busiest of
each worker (``sluice_metrics.meter.busiest`` says which are).  That is for totals only.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from sluice_core.describe import MetricInfo
from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT

#: The levels of a metric that is also counted for single objects.
WITH_OBJECTS: Final = (OBJECT, CONTAINER, TENANT, CLUSTER)

#: The result of the node's cache for a request that a policy lets it answer.
HIT: Final = "hit"
MISS: Final = "miss"


class Response(NamedTuple):
    """The properties of a response at its end.

    ``status`` is the one that leaves Sluice's middleware, refusals by Sluice included.  ``cache`` is :data:`HIT` or
    :data:`MISS` if the cache was searched for the object, else empty.  ``part`` says that the request is a part of
    another one that is counted itself: a segment of a large object, the source of a copy.
    """

    method: str
    status: int
    cache: str = ""
    part: bool = False


class Metric:
    """Base of all metrics: counts nothing."""

    info: ClassVar[MetricInfo]
    #: True for a level (present requests): the value is reported as it is, not as growth.
    gauge: ClassVar[bool] = False
    #: Bytes of an upload's beginning that the metric samples; 0 for none.
    sample_size: ClassVar[int] = 0
    #: True for a mean over responses.
    mean: ClassVar[bool] = False
    #: Above zero, and below one, for a quantile of the seconds that responses took.
    quantile: ClassVar[float] = 0.0

    def admitted(self, method: str) -> float:
        """Swift authorized the request."""
        return 0

    def received(self, method: str, size: int) -> float:
        """``size`` more bytes came from the client."""
        return 0

    def sent(self, method: str, size: int) -> float:
        """``size`` more bytes went to the client."""
        return 0

    def ended(self, method: str) -> float:
        """The request has ended."""
        return 0

    def sampled(self, data: bytes) -> tuple[float, float]:
        """Amount and weight of the first ``sample_size`` bytes of an upload (or all of it); the weight is above zero.

        It is called on the request path and must be quick.
        """
        return 0, 1

    def responded(self, response: Response) -> tuple[float, float]:
        """Amount and weight of a response, neither below zero; a weight of zero leaves it out."""
        return 0, 0
