"""What responses add to metrics that are means over them.

Most responses are equal (``GET``, 200), so a metric is asked once for each :class:`~sluice_metrics.api.Response` and
its answer remembered: a request costs one look-up here, and an addition for each metric that its response concerns.
Amounts and weights are running totals in columns of their own; an agent adds them up over its workers and divides.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Final, Protocol

from sluice_metrics.api import Metric, Response
from sluice_metrics.meter.cell import Cell

#: Different responses that are remembered; clients may invent methods.
_KNOWN: Final = 256
#: Number of a column and what a response adds to it.
_Additions = tuple[tuple[int, float], ...]


class Measured(Protocol):
    """What the counter of responses needs of the meter."""

    def touch(self, *cells: Cell) -> None:
        """Note that ``cells`` changed."""

    def fail(self, event: str, number: int, error: Exception) -> None:
        """Switch a metric off."""


class ResponseCounter:
    """Counts the responses of one worker."""

    def __init__(self, meter: Measured) -> None:
        self._meter = meter
        self._known: dict[Response, _Additions] = {}
        self._metrics: list[tuple[int, int, Metric]] = []

    def measure(self, metrics: Iterable[tuple[int, int, Metric]]) -> None:
        """Count for these from now on.

        :param metrics: number of its column of amounts, of weights, and each metric that is a mean over responses
        """
        self._metrics = list(metrics)
        self._known = {}

    def without(self, number: int) -> None:
        """Metric ``number`` is switched off."""
        self.measure([one for one in self._metrics if one[0] != number])

    def count(self, tenant: Cell, container: Cell, response: Response) -> None:
        """``response``, to a request for an object in ``container``, is over."""
        additions = self._known.get(response)
        if additions is None:
            additions = self._learn(response)
        if not additions:
            return
        ours, theirs = tenant.values, container.values
        for column, amount in additions:
            ours[column] += amount
            theirs[column] += amount
        if not (tenant.dirty and container.dirty):
            self._meter.touch(tenant, container)

    def _learn(self, response: Response) -> _Additions:
        """What ``response`` adds: asked once and remembered."""
        found: list[tuple[int, float]] = []
        for number, weights, metric in list(self._metrics):
            try:
                amount, weight = metric.responded(response)
                if not (isfinite(amount) and isfinite(weight) and amount >= 0 and weight >= 0):
                    raise ValueError(f"`{amount}` of weight `{weight}` is no mean")
            except Exception as error:  # noqa: BLE001  a metric's fault must not end a request; it is logged
                self._meter.fail("responded", number, error)
                continue
            if weight:
                found += [(weights, weight), (number, amount)] if amount else [(weights, weight)]
        additions = tuple(found)
        if len(self._known) < _KNOWN:
            self._known[response] = additions
        return additions
