"""The columns of the history of metrics."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import Column, Data, fields, iso_time, seconds_text
from sluice_client.resources.policies import Columns


def row_of(point: list[Any]) -> Data:
    """A point of the controller's with the names of its values."""
    return dict(zip(("time", "mean", "min", "max", "p95"), point, strict=True))


POINT_LIST: Final[Columns] = (
    Column.field("Time", human=lambda at: iso_time(int(at * 1000))),
    *fields("Mean", "Min", "Max", "P95"),
)
SERIES_LIST: Final[Columns] = (
    *fields("Metric", "Level", "Target"),
    Column("Rest Of", lambda one: one["of"] if one["rest"] else ""),
    Column.field("Step", human=seconds_text),
    *fields("Since", long=True),
)
