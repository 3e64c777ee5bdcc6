"""Samples of uploads: which are taken, and how they are averaged.

A sample costs time (a codec over 64 KiB takes some 100 µs), so samples are rationed: of a container's uploads the first
and then one in :data:`ONE_IN`, and of all uploads of a worker at most :data:`PER_SECOND`.  Each sample counts for its
container and its tenant, in two columns, amounts and weights; an agent adds them up over its workers and divides.
Older samples fade: each new one multiplies the sums by :data:`KEPT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final, Protocol

from sluice_metrics.api import Metric
from sluice_metrics.meter.cell import Cell

ONE_IN: Final = 8
PER_SECOND: Final = 10.0
KEPT: Final = 0.8
#: Smaller uploads are not sampled.
MIN_SAMPLE: Final = 1024
#: Seconds after the last sample for which a value is reported.
VALUE_LIFETIME: Final = 300.0


class Sampled(Protocol):
    """The meter's methods that samplers need."""

    def touch(self, *cells: Cell) -> None:
        """Mark ``cells`` as changed."""

    def fail(self, event: str, number: int, error: Exception) -> None:
        """Switch a metric off."""


class Sample:
    """The beginning of one upload, collected as it passes."""

    __slots__ = ("_cells", "_left", "_pieces", "_sampler")

    def __init__(self, sampler: Sampler, cells: tuple[Cell, ...], size: int) -> None:
        self._sampler = sampler
        self._cells = cells
        self._left = size
        self._pieces: list[bytes] = []

    def add(self, data: bytes) -> bool:
        """Add the next bytes; return True when the sample is complete, and :meth:`end` is due."""
        piece = data[: self._left]
        self._pieces.append(piece)
        self._left -= len(piece)
        return not self._left

    def end(self) -> None:
        """End the sample: no more bytes arrive, or no more are needed; called once."""
        data = b"".join(self._pieces)
        self._pieces = []
        if len(data) >= MIN_SAMPLE:
            self._sampler.measure(self._cells, data)


class Sampler:
    """Rations and keeps the samples of one worker."""

    def __init__(self, meter: Sampled, clock: Callable[[], float]) -> None:
        self._meter = meter
        self._clock = clock
        self._credit = PER_SECOND
        self._credited = clock()
        self._last: dict[Cell, float] = {}
        self.measuring(())

    def measuring(self, metrics: Iterable[tuple[int, int, Metric]]) -> None:
        """Measure these from now on, present samples included.

        :param metrics: number of its column of amounts, of weights, and each metric that samples
        """
        self._metrics = list(metrics)
        self.size = max((metric.sample_size for _, _, metric in self._metrics), default=0)

    def without(self, number: int) -> None:
        """Metric ``number`` is switched off."""
        self.measuring([one for one in self._metrics if one[0] != number])

    def begin(self, tenant: Cell, container: Cell) -> Sample | None:
        """Return the sample of an upload; None when it is not sampled."""
        if not self.size:
            return None
        number, container.uploads = container.uploads, container.uploads + 1
        if number % ONE_IN or not self._afford():
            return None
        return Sample(self, (tenant, container), self.size)

    def measure(self, cells: tuple[Cell, ...], data: bytes) -> None:
        """Measure the first bytes of an upload."""
        now = self._clock()
        for number, weights, metric in list(self._metrics):
            try:
                amount, weight = metric.sampled(data[: metric.sample_size])
                if not (isfinite(amount) and isfinite(weight) and amount >= 0 and weight > 0):
                    raise ValueError(f"`{amount}` of weight `{weight}` is no mean")
            except Exception as error:  # noqa: BLE001  a metric's fault must not end a request; it is logged
                self._meter.fail("sampled", number, error)
                continue
            for cell in cells:
                cell.values[number] = cell.values[number] * KEPT + amount
                cell.values[weights] = cell.values[weights] * KEPT + weight
                self._last[cell] = now
        self._meter.touch(*cells)

    def age(self, now: float) -> None:
        """Remove values that are too old."""
        for cell, last in list(self._last.items()):
            if now - last >= VALUE_LIFETIME:
                del self._last[cell]
                cell.uploads = 0
                for number, weights, _ in self._metrics:
                    cell.values[number] = cell.values[weights] = 0
                self._meter.touch(cell)

    def _afford(self) -> bool:
        now = self._clock()
        self._credit = min(PER_SECOND, self._credit + (now - self._credited) * PER_SECOND)
        self._credited = now
        if self._credit < 1:
            return False
        self._credit -= 1
        return True
