"""Series of the history: their identity, their rings, and the stored metrics of bandwidth.

Actor hosts compute these metrics from the bandwidth report; the API uses the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice_core.describe import MetricInfo
from sluice_core.messages.bandwidth import METHODS
from sluice_core.messages.base import Message
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT, VOLUME
from sluice_core.metrics.node_metrics import NODE

#: Levels whose paths begin with an account.
OWNED: Final = (TENANT, CONTAINER, VOLUME)
#: The level of devices, whose paths are ``node/device``.
DEVICE: Final = "device"
#: The level of the parts of tenants there and on proxies: ``node/device/account`` and ``node/proxy/account``.
PART: Final = "part"


class SeriesKey(NamedTuple):
    """``path`` at ``level``: empty for the cluster.

    ``rest`` is true for the sum of all paths of the level that have no series of their own.
    """

    metric: str
    level: str
    path: str
    rest: bool = False

    @property
    def owner(self) -> str:
        """The account whose members may read it; empty for series of the operator."""
        return self.path.partition("/")[0] if self.level in OWNED else ""

    @property
    def account(self) -> str:
        """The account in its path; empty without one."""
        return self.path.rpartition("/")[2] if self.level == PART else self.owner


@dataclass(frozen=True, slots=True)
class SeriesRecord(Message):
    """A stored series.

    ``id`` names its rings.  ``step`` is that of its finest resolution, in seconds, and ``since`` the unix time of its
    beginning.  ``of`` is the last number of paths in the sum of a rest.
    """

    id: str
    metric: str
    level: str
    path: str
    step: int
    since: int
    rest: bool = False
    of: int = 0

    @property
    def key(self) -> SeriesKey:
        """The metric, the level and the path of the series."""
        return SeriesKey(self.metric, self.level, self.path, self.rest)


#: Fields of the report's rows (``BandwidthReport``) that are stored, each as a metric of its own.
FLOW_QUANTITIES: Final = ("measured", "share", "floor", "ceiling")
NODE_QUANTITIES: Final = ("measured", "assigned", "capacity")
PART_QUANTITIES: Final = ("measured", "share")
_KINDS: Final = (
    (TENANT, "", FLOW_QUANTITIES, (CONTAINER, TENANT, CLUSTER)),
    (NODE, "NODE_", NODE_QUANTITIES, (NODE,)),
    (DEVICE, "DEVICE_", PART_QUANTITIES, (DEVICE,)),
    (PART, "PART_", PART_QUANTITIES, (PART,)),
)
_MEANING: Final = {
    "measured": "moved",
    "share": "that may move, where that is limited",
    "floor": "promised",
    "ceiling": "never exceeded",
    "assigned": "that may move, where that is limited",
    "capacity": "that can move, where that is known",
}


def family(method: str, level: str) -> tuple[str, ...]:
    """The metrics of ``method`` of tenants and containers (``TENANT``), of nodes, devices or parts."""
    for kind, prefix, quantities, _ in _KINDS:
        if kind == level:
            return tuple(f"{prefix}{method}_BW_{one.upper()}" for one in quantities)
    raise ValueError(level)


def _described() -> Iterator[MetricInfo]:
    for method in METHODS:
        for kind, _, quantities, levels in _KINDS:
            for name, quantity in zip(family(method, kind), quantities, strict=True):
                text = f"bytes of {method} {_MEANING[quantity]}"
                yield MetricInfo(name, "bytes_per_second", text, levels)


#: By name.
BANDWIDTH_METRICS: Final = {one.name: one for one in _described()}
#: Metric → all metrics of the same paths.
FAMILIES: Final = {
    name: family(method, kind) for method in METHODS for kind, *_ in _KINDS for name in family(method, kind)
}
