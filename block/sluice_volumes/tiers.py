"""Which pools meet a demand, which tier is the cheapest that does, and the extra specs for Cinder's scheduler.

A tier has a number of replicas, a bandwidth and operations per second for each of its volumes.  A demand requires such
values.  A pool meets both when its measured capacity is enough, or its reported one if it was not measured; a pool that
reports nothing meets no demand of that kind.

Cinder's scheduler chooses the pool of a new volume by the extra specs of its type (:func:`extra_specs`), which it
compares with the reports of pools.  If a measurement differs from a report, the specs name the pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_core.describe import Scalar
from sluice_volumes.messages import Pool, PoolCalibration, Tier

NO_RESILIENCY: Final = "none"
RAID: Final = "raid"
#: The ways to reach volumes.
FABRICS: Final = ("nbd", "iscsi", "rbd", "nfs", "fc")
#: Demands on a volume, besides space.
DEMANDS: Final = ("resiliency", "bandwidth", "iops", "fabric")
#: Greatest limit and greatest demand, in operations per second.
MOST_IOPS: Final = 1e9
#: Greatest number of replicas.
MOST_REPLICAS: Final = 9
#: Pools report their bandwidth in MB/s.
MB: Final = 1e6
#: In the extra specs of a tier's type: its name.
TIER: Final = "sluice:tier"
#: In the same specs: the cluster that keeps the type.
MANAGED: Final = "sluice:managed"
#: Fabric → its name in Cinder's drivers.
_PROTOCOLS: Final = {"rbd": "ceph", "iscsi": "iSCSI", "fc": "FC"}

Pools = Mapping[str, Pool]
Calibrations = Mapping[str, PoolCalibration]


@dataclass(frozen=True, slots=True)
class Demands:
    """Demands on a volume; bytes and operations per second, and bytes of size.  Empty or 0: none."""

    resiliency: str = ""
    bandwidth: float = 0.0
    iops: float = 0.0
    fabric: str = ""
    size: float = 0.0

    @classmethod
    def of_tier(cls, tier: Tier, size: float = 0.0) -> Demands:
        """Return the demands of ``tier`` on pools, for a volume of ``size`` bytes."""
        return cls(tier.resiliency, tier.bandwidth, tier.iops, tier.fabric, size)

    @classmethod
    def of_action(cls, params: Mapping[str, Scalar]) -> Demands:
        """Return the demands of a policy's ``tier`` action."""
        resiliency, fabric = (str(params.get(name, "")) for name in ("resiliency", "fabric"))
        bandwidth, iops = (float(params.get(name, 0.0)) for name in ("bandwidth", "iops"))
        return cls(resiliency, bandwidth, iops, fabric)


@dataclass(frozen=True, slots=True)
class Unmet:
    """A demand that no pool meets: its name, and the nearest value, empty when no pool reports one."""

    name: str
    nearest: str


def resiliency_rank(text: str) -> int:
    """Return the rank of a resiliency: none 0, RAID 1, else the number of replicas; -1 for an empty text."""
    if text == RAID:
        return 1
    if text == NO_RESILIENCY:
        return 0
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= MOST_REPLICAS else -1


def bandwidth(pool: Pool, measured: PoolCalibration | None = None) -> float:
    """Return the bytes per second of a pool, the smaller of reads and writes; -1 when unknown."""
    if measured is not None:
        return min(measured.read_bw, measured.write_bw)
    return _number(pool, "bandwidth") * MB if _number(pool, "bandwidth") >= 0 else -1.0


def iops(pool: Pool, measured: PoolCalibration | None = None) -> float:
    """Return the operations per second of a pool, the smaller of reads and writes; -1 when unknown."""
    return _number(pool, "iops") if measured is None else min(measured.read_iops, measured.write_iops)


def _number(pool: Pool, name: str) -> float:
    try:
        return max(float(pool.capabilities.get(name, "")), -1.0)
    except ValueError:
        return -1.0


def unmet(pool: Pool, demands: Demands, measured: PoolCalibration | None = None) -> list[str]:
    """Return the names of the demands that a pool does not meet."""
    rank = resiliency_rank(demands.resiliency) if demands.resiliency else -1
    checks = {
        "resiliency": not demands.resiliency or resiliency_rank(pool.capabilities.get("resiliency", "")) >= rank,
        "bandwidth": bandwidth(pool, measured) >= demands.bandwidth if demands.bandwidth else True,
        "iops": iops(pool, measured) >= demands.iops if demands.iops else True,
        "fabric": demands.fabric in ("", pool.capabilities.get("fabric", "")),
        # a pool that does not report its free space is left to Cinder
        "size": pool.free < 0 or pool.free >= demands.size,
    }
    return [name for name, met in checks.items() if not met]


def meeting_pools(demands: Demands, pools: Pools, calibrations: Calibrations) -> list[Pool]:
    """Return the pools that meet all ``demands``, the one with most free space first."""
    found = [one for one in pools.values() if not unmet(one, demands, calibrations.get(one.name))]
    return sorted(found, key=lambda pool: (-pool.free, pool.name))


def matching_tiers(demands: Demands, tiers: Iterable[Tier], pools: Pools, calibrations: Calibrations) -> list[Tier]:
    """Return the tiers that satisfy the demands and have a pool for them now, the cheapest first."""
    matching = [
        one
        for one in tiers
        if _promises(one, demands) and meeting_pools(Demands.of_tier(one, demands.size), pools, calibrations)
    ]
    return sorted(matching, key=lambda tier: (tier.cost, tier.name))


def _promises(tier: Tier, demands: Demands) -> bool:
    return (
        (not demands.resiliency or resiliency_rank(tier.resiliency) >= resiliency_rank(demands.resiliency))
        and tier.bandwidth >= demands.bandwidth
        and tier.iops >= demands.iops
        and demands.fabric in ("", tier.fabric)
    )


def unmet_by_all(demands: Demands, pools: Pools, calibrations: Calibrations) -> list[Unmet]:
    """Return the demands that no pool meets, each with the nearest value; empty when each alone is met."""
    all_names = (*DEMANDS, "size")
    missed = [set(unmet(one, demands, calibrations.get(one.name))) for one in pools.values()]
    # without any pool, no demand is met
    names = set.intersection(*missed) if missed else {name for name in all_names if getattr(demands, name)}
    return [Unmet(name, _nearest(name, pools, calibrations)) for name in all_names if name in names]


def _nearest(name: str, pools: Pools, calibrations: Calibrations) -> str:
    if name == "fabric":
        return ", ".join(sorted({one.capabilities[name] for one in pools.values() if name in one.capabilities}))
    if name == "resiliency":
        said = [one.capabilities.get(name, "") for one in pools.values()]
        best = max(said, key=resiliency_rank, default="")
        return best if resiliency_rank(best) >= 0 else ""
    highest = max((_values(one, calibrations.get(one.name))[name] for one in pools.values()), default=-1.0)
    if highest < 0:
        return ""
    return {"bandwidth": f"{highest / MB:g} MB/s", "iops": f"{highest:g}", "size": f"{highest / 2**30:.1f} GiB"}[name]


def _values(pool: Pool, measured: PoolCalibration | None) -> dict[str, float]:
    return {"bandwidth": bandwidth(pool, measured), "iops": iops(pool, measured), "size": pool.free}


def extra_specs(tier: Tier, cluster: str, pools: Pools, calibrations: Calibrations) -> dict[str, str]:
    """Return the extra specs of a tier's volume type.

    :param cluster: the cluster that keeps the type
    """
    specs = {TIER: tier.name, MANAGED: cluster}
    if tier.fabric:
        specs["storage_protocol"] = _PROTOCOLS.get(tier.fabric, tier.fabric)
    demands = Demands.of_tier(tier)
    differing = any(unmet(one, demands, calibrations.get(one.name)) != unmet(one, demands) for one in pools.values())
    if differing:
        return {**specs, **_named_pools(meeting_pools(demands, pools, calibrations), pools)}
    if tier.resiliency == RAID:
        specs["capabilities:sluice:resiliency"] = _any_of([RAID, *map(str, range(2, MOST_REPLICAS + 1))])
    elif resiliency_rank(tier.resiliency) > 0:
        specs["capabilities:sluice:resiliency"] = f">= {tier.resiliency}"
    if tier.bandwidth:
        specs["capabilities:sluice:bandwidth"] = f">= {tier.bandwidth / MB:g}"
    if tier.iops:
        specs["capabilities:sluice:iops"] = f">= {tier.iops:g}"
    return specs


def _named_pools(chosen: Iterable[Pool], pools: Pools) -> dict[str, str]:
    """Return the extra spec that names ``chosen`` and no other pool, as far as possible.

    With a driver without pools, such as Cinder's own for NFS and Ceph, only the back end has a name.
    """
    names = {one.name: one.specs.get("pool_name", "") for one in chosen}
    if all(names.values()):
        return {"pool_name": _any_of(sorted(set(names.values())))}
    others = {one.specs.get("volume_backend_name") for one in pools.values() if one.name not in names}
    back_ends = {pools[name].specs.get("volume_backend_name", "") for name in names} - others
    return {"volume_backend_name": _any_of(sorted(filter(None, back_ends)))}


def _any_of(words: Iterable[str]) -> str:
    return " ".join(f"<or> {one}" for one in words)
