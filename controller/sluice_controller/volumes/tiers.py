"""Tiers: classes of volumes, each a volume type of Cinder that Sluice maintains.

A type belongs to Sluice if its extra specs name this cluster (the prefix of its keys) and the tier.  Another type with
the name of a tier is never changed, nor deleted.  A type of Sluice is: so a tier whose creation was interrupted, or
whose Redis was lost, is created again.  The types are not watched: changes that are made in Cinder are shown, and
repaired on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.bodies import Body, read_rate
from sluice_controller.validation.names import near_miss, new_name
from sluice_controller.volumes.cinder_access import service_cinder
from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_volumes import operations
from sluice_volumes.cinder.records import CinderType
from sluice_volumes.messages import Pool, PoolCalibration, Tier
from sluice_volumes.tiers import (
    DEMANDS,
    FABRICS,
    MANAGED,
    MOST_IOPS,
    MOST_REPLICAS,
    NO_RESILIENCY,
    RAID,
    TIER,
    Demands,
    extra_specs,
    matching_tiers,
    meeting_pools,
    resiliency_rank,
    unmet_by_all,
)

#: The maximum size of a volume in Cinder, in GiB.
MOST_GIB: Final = (1 << 31) - 1


def read_demands(body: Body, size: int = 0) -> Demands:
    """The demands in ``body``; a missing field is no demand.

    :param size: of the volume, in GiB
    :raises CallerError: when a field is not valid
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


#: The state of a tier's type in Cinder: as it must be, different, or missing.
OK: Final = "ok"
DRIFTED: Final = "drifted"
GONE: Final = "gone"
STATES: Final = (OK, DRIFTED, GONE)
#: A word that replaces the name of a tier in the path.
MATCH: Final = "match"
_MOST_COST: Final = 1e12
#: Prefixes of the extra specs that Sluice sets; an administrator may set others on the type.
_OURS: Final = ("sluice:", "capabilities:sluice:", "storage_protocol", "pool_name", "volume_backend_name")


@dataclass(frozen=True, slots=True)
class KnownPools:
    """The pools of the last discovery, and the measured values of some."""

    pools: Mapping[str, Pool]
    calibrations: Mapping[str, PoolCalibration]

    @classmethod
    def read(cls, backend: Backend) -> KnownPools:
        """Read the pools of the cluster."""
        store = backend.store
        pools = store.run(operations.POOLS.read_all(store.keys))
        calibrations = store.run(operations.CALIBRATIONS.read_all(store.keys))
        return cls(pools, calibrations)

    def meeting(self, demands: Demands) -> list[Pool]:
        """The pools that meet all demands, the one with most free space first."""
        return meeting_pools(demands, self.pools, self.calibrations)


@dataclass(frozen=True, slots=True)
class TierView:
    """A tier, the state of its type in Cinder, and the pools that meet it; ``drift`` has the differences in Cinder."""

    tier: Tier
    state: str
    drift: tuple[str, ...]
    pools: tuple[Pool, ...]


def list_all(backend: Backend) -> dict[str, TierView]:
    """Name → tier."""
    types = {one.id: one for one in service_cinder(backend).types()}
    known = KnownPools.read(backend)
    tiers = backend.store.run(operations.TIERS.read_all(backend.store.keys))
    return {name: _view(backend, one, types.get(one.type), known) for name, one in tiers.items()}


def find(backend: Backend, name: str) -> TierView:
    """
    :raises NotFound: when there is no such tier
    """
    tiers = list_all(backend)
    if name not in tiers:
        raise NotFound(f"there is no tier `{name}`{near_miss(name, tiers)}")
    return tiers[name]


def create(backend: Backend, data: Any, by: str) -> TierView:
    """Create a tier and its volume type.

    :raises CallerError: when the body is not valid
    :raises Conflict: when the tier exists, or another volume type has its name
    """
    body = Body(data, "name", "cost", *DEMANDS)
    name = new_name(body.text("name", longest=255))
    if name == MATCH:
        raise CallerError(f"`{MATCH}` cannot be the name of a tier, expected another name")
    wanted = read_demands(body)
    cost = body.number("cost", 0.0, 0.0, _MOST_COST)
    tier = Tier(name, "", wanted.resiliency, wanted.bandwidth, wanted.iops, wanted.fabric, cost, backend.now(), by)
    if name in backend.store.run(operations.TIERS.read_all(backend.store.keys)):
        raise Conflict(f"there is a tier `{name}` already")
    made = _make_type(backend, tier)
    if not backend.store.run(operations.TIERS.create(backend.store.keys, made)):
        raise Conflict(f"there is a tier `{name}` already")
    return find(backend, name)


def repair(backend: Backend, name: str) -> TierView:
    """Repair a tier's volume type, also if it was deleted.

    :raises NotFound: when there is no such tier
    :raises Conflict: when another type has its name now
    """
    old = find(backend, name)
    if old.state == OK:
        return old
    made = _make_type(backend, old.tier)
    backend.store.run(operations.TIERS.write(backend.store.keys, made))
    return find(backend, name)


def delete(backend: Backend, name: str) -> None:
    """Delete a tier and its volume type.

    :raises NotFound: when there is no such tier
    :raises Conflict: when volumes have it
    """
    old = find(backend, name)
    if old.state != GONE:
        try:
            service_cinder(backend).delete_type(old.tier.type)
        except NotFound:
            pass
        except Forbidden:
            raise
        except CallerError as error:
            raise Conflict(f"tier `{name}` stays: {error}") from error
    backend.store.run(operations.TIERS.delete(backend.store.keys, name))


def _make_type(backend: Backend, tier: Tier) -> Tier:
    """The tier with its type, which gets its extra specs."""
    cinder = service_cinder(backend)
    known = KnownPools.read(backend)
    wanted = extra_specs(tier, backend.store.keys.prefix, known.pools, known.calibrations)
    known_types = sorted(cinder.types(), key=lambda one: one.id != tier.type)
    existing = next((one for one in known_types if one.id == tier.type or one.name == tier.name), None)
    if existing is None:
        made = cinder.create_type(tier.name, wanted, f"tier `{tier.name}` of Sluice, which keeps its extra specs")
        return replace(tier, type=made.id)
    if existing.id != tier.type and not _is_ours(backend, existing, tier.name):
        raise Conflict(f"cinder has a volume type `{tier.name}` that Sluice did not create, expected another name")
    extra = tuple(name for name in existing.specs if name.startswith(_OURS) and name not in wanted)
    cinder.change_specs(existing.id, wanted, extra)
    return replace(tier, type=existing.id)


def _is_ours(backend: Backend, found: CinderType, name: str) -> bool:
    return found.specs.get(MANAGED) == backend.store.keys.prefix and found.specs.get(TIER) == name


def _view(backend: Backend, tier: Tier, existing: CinderType | None, known: KnownPools) -> TierView:
    pools = tuple(known.meeting(Demands.of_tier(tier)))
    if existing is None:
        return TierView(tier, GONE, (f"cinder has no volume type `{tier.type}`",), pools)
    wanted = extra_specs(tier, backend.store.keys.prefix, known.pools, known.calibrations)
    drift = [] if existing.name == tier.name else [f"name: `{existing.name}`, expected `{tier.name}`"]
    for name in sorted({*wanted, *(name for name in existing.specs if name.startswith(_OURS))}):
        here, there = wanted.get(name, ""), existing.specs.get(name, "")
        if here != there:
            drift.append(f"{name}: {_shown(there)}, expected {_shown(here)}")
    return TierView(tier, DRIFTED if drift else OK, tuple(drift), pools)


def _shown(text: str) -> str:
    return f"`{text}`" if text else "nothing"


@dataclass(frozen=True, slots=True)
class Match:
    """The cheapest tier that meets demands, its pools with enough space, and further tiers that meet the demands."""

    tier: Tier
    pools: tuple[Pool, ...]
    others: tuple[str, ...]


def match(backend: Backend, size: int, **demanded: str | float) -> Match:
    """The cheapest tier that meets demands now.

    :param size: GiB of free space that one of its pools must have
    :param demanded: the demands by name; empty or 0 for no demand
    :raises CallerError: when a demand is not valid
    :raises Conflict: when there is none; names each demand that no pool meets and the nearest value
    """
    body = Body({name: value for name, value in demanded.items() if value}, *DEMANDS)
    return cheapest(backend, read_demands(body, size))


def cheapest(backend: Backend, demands: Demands) -> Match:
    """The cheapest tier that meets ``demands`` now.

    :raises Conflict: like :func:`match`
    """
    known = KnownPools.read(backend)
    tiers = backend.store.run(operations.TIERS.read_all(backend.store.keys)).values()
    matching = matching_tiers(demands, tiers, known.pools, known.calibrations)
    if not matching:
        raise Conflict(_refusal(demands, known, tiers))
    pools = known.meeting(Demands.of_tier(matching[0], demands.size))
    return Match(matching[0], tuple(pools), tuple(one.name for one in matching[1:]))


def _refusal(demands: Demands, known: KnownPools, tiers: Iterable[Tier]) -> str:
    if not known.pools:
        return "no tier meets that: no pool of Cinder is known, does an actor host with the options of Cinder run?"
    missed = unmet_by_all(demands, known.pools, known.calibrations)
    if missed:
        parts = (f"`{one.name}` (nearest: {one.nearest or 'no pool reports it'})" for one in missed)
        return f"no pool meets {', '.join(parts)}"
    pools = known.meeting(demands)
    if not pools:
        return "no pool meets all of these demands together, each of them is met by some pool"
    names = ", ".join(f"`{one.name}`" for one in pools[:5])
    there = ", ".join(f"`{one.name}`" for one in tiers) or "there are none"
    return f"no tier has that, though pools would meet it: {names}; tiers: {there}"
