"""What is counted by path, at the levels of the paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sluice_core.messages.policies import CONTAINER, OBJECT, TENANT, VOLUME
from sluice_core.metrics.sketch import Sketch, merge

T = TypeVar("T")


def granularity(path: str) -> str:
    """The target level of ``account``, ``account/container`` or ``account/container/object``."""
    return (TENANT, CONTAINER, OBJECT)[min(path.count("/"), 2)]


def by_granularity(cells: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """What there is by the level of its path."""
    found: dict[str, dict[str, T]] = {}
    for path, value in cells.items():
        found.setdefault(granularity(path), {})[path] = value
    return found


def values_by_volume(cells: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """What there is by ``account/volume``, for each volume and, added up, for each tenant."""
    tenants: dict[str, float] = {}
    for path, value in cells.items():
        account = path.partition("/")[0]
        tenants[account] = tenants.get(account, 0.0) + value
    return {VOLUME: dict(cells), TENANT: tenants} if cells else {}


def sketches_by_volume(cells: Mapping[str, Sketch]) -> dict[str, dict[str, Sketch]]:
    """The same of sketches."""
    tenants: dict[str, Sketch] = {}
    for path, sketch in cells.items():
        merge(tenants.setdefault(path.partition("/")[0], {}), sketch.items())
    return {VOLUME: dict(cells), TENANT: tenants} if cells else {}
