"""Lists of volumes, tiers and pools, as the API has them, and what is said of them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sluice_client import Client
from sluice_dashboard.charts.units import rate, size
from sluice_dashboard.volumes import operations
from sluice_dashboard.volumes.operations import Wanted


@dataclass(frozen=True, slots=True)
class TierRow:
    """A tier, what it promises in words, and the most that one of its pools has free, in bytes (None: not known)."""

    tier: Mapping[str, Any]
    promise: str
    most_free: float | None


def fetch_tiers(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """All tiers."""
    return {"tiers": [tier_row(one) for one in client.collection("/volumes/tiers").list()]}


def tier_row(tier: Mapping[str, Any]) -> TierRow:
    """One tier."""
    known = [pool["free"] for pool in tier["pools"] if pool["free"] is not None]
    return TierRow(tier, promise_text(tier), max(known, default=None))


def promise_text(tier: Mapping[str, Any]) -> str:
    """What a tier promises each of its volumes, as ``2 replicas, 50 MB/s, nbd``."""
    iops = tier["iops"]
    found = [
        resiliency_text(tier["resiliency"]),
        rate(tier["bandwidth"]) if tier["bandwidth"] else "",
        _("%g operations per second") % iops if iops else "",
        tier["fabric"],
    ]
    return ", ".join(filter(None, found)) or str(_("nothing"))


def resiliency_text(resiliency: str) -> str:
    """``none``, ``raid`` or a number of replicas, in words."""
    if resiliency.isdigit():
        return str(ngettext("%d replica", "%d replicas", int(resiliency)) % int(resiliency))
    words = {"": "", "none": _("not resilient"), "raid": _("RAID")}
    return str(words.get(resiliency, resiliency))


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool; ``used`` is its used share in percent, None where it does not say how large it is."""

    pool: Mapping[str, Any]
    used: int | None
    claims: str
    measured: str

    @property
    def free_text(self) -> str:
        """What is free, of how much."""
        given = {"free": size(self.pool["free"]), "total": size(self.pool["total"])}
        return str(_("%(free)s of %(total)s") % given)


def fetch_pools(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """All pools of Cinder."""
    return {"pools": [pool_row(one) for one in client.pools()]}


def fetch_pool(client: Client, request: HttpRequest, pool: str) -> Mapping[str, Any]:
    """One pool, and whether it is being measured; ``row`` is None where Cinder has none of that name."""
    return {
        "row": next((pool_row(one) for one in client.pools() if one["name"] == pool), None),
        "pool": pool,
        "under_way": operations.under_way(client, Wanted(pool=pool)),
        "ended": operations.ended(client, Wanted(pool=pool)),
    }


def pool_row(pool: Mapping[str, Any]) -> PoolRow:
    """One pool as :meth:`Client.pools` has it."""
    total, free = pool["total"], pool["free"]
    used = round(100 * (1 - free / total)) if total and free is not None else None
    return PoolRow(pool, used, claims_text(pool["capabilities"]), measured_text(pool["measured"]))


def claims_text(capabilities: Mapping[str, str]) -> str:
    """What a pool says of itself, as Cinder's configuration has it: ``bandwidth`` in MB/s."""
    units = {"bandwidth": "MB/s", "iops": "/s"}
    return ", ".join(f"{name} {value} {units.get(name, '')}".rstrip() for name, value in sorted(capabilities.items()))


def measured_text(measured: Mapping[str, Any] | None) -> str:
    """What was measured of a pool."""
    if measured is None:
        return ""
    given = {
        "read": rate(measured["read_bw"]),
        "write": rate(measured["write_bw"]),
        "reads": f"{measured['read_iops']:.0f}",
        "writes": f"{measured['write_iops']:.0f}",
    }
    return str(_("reads %(read)s and %(reads)s/s, writes %(write)s and %(writes)s/s") % given)


def tier_choices(client: Client, empty: str) -> Sequence[tuple[str, str]]:
    """Tiers for a form; ``empty`` is what choosing none is called."""
    rows = (tier_row(one) for one in client.collection("/volumes/tiers").list())
    return [("", empty), *((one.tier["name"], f"{one.tier['name']}: {one.promise}") for one in rows)]
