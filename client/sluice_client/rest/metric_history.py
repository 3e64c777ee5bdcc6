"""The history of metrics: what they were, and of which targets that is kept."""

from __future__ import annotations

from collections.abc import Iterator

from sluice_client.rest.operations_document import OperationCaller, calls
from sluice_client.rest.transport import Data


class MetricHistoryApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` that are about the history of metrics."""

    @calls("show_metric_history", begin="from", end="to")
    def metric_history(
        self,
        metric: str,
        target: str = "",
        rest: str = "",
        begin: str = "",
        end: str = "",
        step: int = 0,
    ) -> Data:
        """What ``metric`` was: ``points`` has a row for each step, with its beginning, mean, min, max and p95.

        :param target: of which; the cluster when empty
        :param rest: a level; the sum of its targets that are not kept one by one, instead of ``target``
        :param begin: ISO 8601, unix seconds, or negative seconds from now on, as is ``end``
        :param step: seconds; 0 for what suits the range
        """

    @calls("list_metric_series")
    def metric_series(self, metric: str = "", target: str = "") -> Iterator[Data]:
        """The series of which history is kept, and that one may see."""

    def forget_metric_history(self, target: str) -> int:
        """Forget the history of ``target`` and of what is in it; returns how many series that were."""
        answer = self._transport.call("DELETE", "/metrics/history", query={"target": target})
        return int(answer["series"])
