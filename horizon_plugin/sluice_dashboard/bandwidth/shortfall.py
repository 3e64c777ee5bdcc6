"""What is missing of floors, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from sluice_dashboard.bandwidth.names import FLOORS, MOVES, name_of, owner_name
from sluice_dashboard.charts.units import rate

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A floor that is not met: ``path`` and ``name`` of whose it is, bytes per second that are missing, a sentence."""

    path: str
    name: str
    missing: float
    text: str


def shortfalls(flows: Iterable[Row], objectives: Iterable[Row]) -> list[Shortfall]:
    """A line for each floor that is not met, the largest first.

    :param flows: of ``GET /bw/flows``
    :param objectives: of ``GET /bw/slo``; those that no flow speaks of promise something to who moves nothing now
    """
    short = [one for one in flows if one["short"] > 0]
    found = [_of_flow(one) for one in short]
    found += _of_objectives(objectives, short)
    return sorted(found, key=lambda one: (-one.missing, one.text))


def _of_flow(flow: Row) -> Shortfall:
    text = _(
        "%(name)s is promised %(floor)s of %(method)s%(under)s. The cluster can carry %(met)s of it now: %(short)s are "
        "missing. %(measured)s are moved."
    )
    rates = {name: rate(flow[name]) for name in ("floor", "met", "short", "measured")}
    name = owner_name(flow)
    words = {"name": name, "method": name_of(MOVES, flow["method"]), "under": _under(flow)}
    path = "/".join(filter(None, (flow["account"], flow["container"])))
    return Shortfall(path, name, flow["short"], str(text) % {**rates, **words})


def _of_objectives(objectives: Iterable[Row], short: Iterable[Row]) -> Iterator[Shortfall]:
    told = {(one["account"], one["method"], policy) for one in short for policy in one["policies"]}
    text = _(
        "%(name)s is promised %(floor)s of %(method)s%(under)s, of which nothing is used now. "
        "%(short)s of it are missing."
    )
    for one in objectives:
        method = FLOORS.get(one["name"])
        if not one["infeasible"] or method is None or (one["account"], method, one["policy"]) in told:
            continue
        missing, name = one["infeasible"]["shortfall"], owner_name(one)
        words = {
            "name": name,
            "floor": rate(one["value"]),
            "method": name_of(MOVES, method),
            "under": _under(one),
            "short": rate(missing),
        }
        yield Shortfall(one["account"], name, missing, str(text) % words)


def _under(row: Row) -> str:
    name = row["storage_policy"]
    return str(_(" under the storage policy %s")) % name if name else ""
