"""A metric in ten lines: deletions per second."""

from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric


class DeletesSec(Metric):
    """``WHEN DELETES_SEC > 10``."""

    info = MetricInfo("DELETES_SEC", "per_second", "DELETEs per second")

    def admitted(self, method):
        return 1 if method == "DELETE" else 0
