"""The metrics of one worker: those that are installed, and uploaded ones as they come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_code.code_store import CodeStore
from sluice_code.proven import ProvenCode
from sluice_core.messages.uploads import METRIC_CODE, Upload
from sluice_metrics.api import Metric
from sluice_metrics.meter.meter import Meter
from sluice_metrics.native import create_metric
from sluice_middleware.log import Logger


class WorkerMetrics:
    """The worker's ``meter``, kept equal to what the snapshot says; nothing of this is on the way of a request."""

    def __init__(
        self,
        installed: Mapping[str, type[Metric]],
        options: Mapping[str, Any],
        logger: Logger,
    ) -> None:
        """
        :param options: ``code_dir`` and ``busiest_objects``
        """
        self._installed = {name: metric() for name, metric in installed.items()}
        self._logger = logger
        self.meter = Meter(self._installed.values(), objects=options["busiest_objects"])
        folder = options["code_dir"]
        self._uploaded = (
            ProvenCode(METRIC_CODE, CodeStore(folder), create_metric, logger, self._installed) if folder else None
        )

    def apply_uploads(self, uploads: tuple[Upload, ...]) -> bool:
        """Count the running metrics of ``uploads`` beside those installed; True when the agent needs a new hello."""
        if self._uploaded is None or not self._uploaded.update(uploads):
            return False
        try:
            self.meter.measure((*self._installed.values(), *self._uploaded.found.values()))
        except ValueError as error:
            self._logger.error("sluice: uploaded metrics stay as they are: %s", error)
            return False
        return True
