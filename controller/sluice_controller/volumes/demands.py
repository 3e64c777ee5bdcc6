"""What a volume or a tier must have, in bodies of requests."""

from __future__ import annotations

from typing import Final

from sluice_controller.validation.bodies import Body
from sluice_controller.validation.rates import read_rate
from sluice_core.errors import CallerError
from sluice_volumes.tiers import FABRICS, MOST_REPLICAS, NO_RESILIENCY, RAID, Demands, resiliency_rank

#: The fields.
DEMANDS: Final = ("resiliency", "bandwidth", "iops", "fabric")
#: GiB that a volume may have in Cinder.
MOST_GIB: Final = (1 << 31) - 1
MOST_IOPS: Final = 1e9


def read_demands(body: Body, size: int = 0) -> Demands:
    """The demands in ``body``; what is missing is not demanded.

    :param size: of the volume, in GiB
    :raises CallerError: for a field that makes no sense
    """
    resiliency = body.value("resiliency") if body.has("resiliency") else ""
    if resiliency and resiliency_rank(resiliency) < 0:
        expected = f"{NO_RESILIENCY}, {RAID} or a number of replicas, at most {MOST_REPLICAS}"
        raise CallerError(f"`resiliency` is `{resiliency}`, expected {expected}")
    bandwidth = read_rate("bandwidth", body.value("bandwidth")) if body.has("bandwidth") else 0.0
    iops = body.number("iops", 0.0, 1.0, MOST_IOPS) if body.has("iops") else 0.0
    fabric = body.one_of("fabric", FABRICS) if body.has("fabric") else ""
    return Demands(resiliency, bandwidth, iops, fabric, float(size << 30))


def read_size(body: Body) -> int:
    """The size of a volume, in GiB."""
    return body.whole("size", 1, MOST_GIB, "a whole number of GiB")
