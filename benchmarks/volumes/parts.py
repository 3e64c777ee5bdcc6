"""The parts of the benchmarks that measure volumes, by the names that ``--only`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.harness.figures import Figure
from benchmarks.harness.scale import Scale
from benchmarks.volumes import content, filters, floors, many, path, policies, replacement, throttle

PARTS: Final[Mapping[str, Callable[[Scale], list[Figure]]]] = {
    "volume_throttle": throttle.measure,
    "volume_filters": filters.measure,
    "volume_path": path.measure,
    "volume_content": content.measure,
    "volume_replace": replacement.measure,
    "volume_many": many.measure,
    "volume_policies": policies.measure,
    "volume_floors": floors.measure,
}
