"""Measures how many bytes are stored per byte of an upload: replicas, parity, and the output of filters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.loads.flow_index import flow_numbers
from sluice_actors.bandwidth.loads.node_loads import LoadTable
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import PUT

#: Bytes stored per byte of an upload, until that is measured.
DEFAULT_AMPLIFICATION: Final = 3.0
_MIN, _MAX = 0.05, 20.0
_MEAN_SECONDS: Final = 5.0
#: A lower rate of uploads, in bytes per second, is not measured.
_MIN_SENT: Final = 1e6


@dataclass(slots=True)
class WriteAmplification:
    """Stored bytes per sent byte, by storage policy, as means over some seconds.

    :param default: until it is measured
    """

    default: float = DEFAULT_AMPLIFICATION
    _means: dict[int, tuple[float, float]] = field(default_factory=dict)

    def update(self, table: LoadTable, seconds: float) -> None:
        """Measure the uploads of the last second.

        :param seconds: the time that this second stands for
        """
        sums: dict[int, list[float]] = {}
        for column, side in enumerate((PROXY, STORAGE_NODE)):
            index = table.indexes(PUT, side)
            flows, within = np.unique(flow_numbers(table.stats.flow_sides[index]), return_inverse=True)
            moved = np.bincount(within, table.stats.moved[index], minlength=len(flows))
            for flow, rate in zip(flows.tolist(), moved.tolist(), strict=True):
                sums.setdefault(table.flow_index.flows[flow].policy, [0.0, 0.0])[column] += rate
        part = 1.0 - math.exp(-seconds / _MEAN_SECONDS)
        for policy, (sent, stored) in sums.items():
            if sent >= _MIN_SENT and stored > 0:
                sent_before, stored_before = self._means.get(policy, (sent, sent * self.default))
                self._means[policy] = (
                    sent_before + part * (sent - sent_before),
                    stored_before + part * (stored - stored_before),
                )

    def factor(self, policy: int) -> float:
        """Stored bytes per sent byte under the storage policy with this index."""
        sent, stored = self._means.get(policy, (1.0, self.default))
        return min(max(stored / sent, _MIN), _MAX)
