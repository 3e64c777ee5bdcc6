"""COMPRESSIBILITY: how well uploads compress."""

from __future__ import annotations

from typing import ClassVar

import zstandard

from sluice_core.describe import MetricInfo
from sluice_core.messages.policies import CONTAINER, TENANT
from sluice_metrics.api import Metric


class Compressibility(Metric):
    """Plain bytes divided by compressed ones, of the first 64 KiB of some uploads, with zstd at its fastest level.

    Plain bytes are those that the client sent: a policy that compresses does not change the value.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        "COMPRESSIBILITY",
        "ratio",
        "how well uploads compress: 2 means to a half, which is also written 50%",
        granularities=(TENANT, CONTAINER),
    )
    sample_size: ClassVar[int] = 64 * 1024

    def __init__(self) -> None:
        self._codec = zstandard.ZstdCompressor(level=1, write_content_size=False)

    def sampled(self, data: bytes) -> tuple[float, float]:
        # bytes that do not shrink are stored uncompressed
        return len(data), min(len(self._codec.compress(data)), len(data))
