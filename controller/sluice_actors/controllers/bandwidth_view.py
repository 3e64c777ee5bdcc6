"""What a controller is shown of bandwidth: the rows of the report that the allocating host writes each second.

The report lies in Redis, so a controller sees it wherever it runs; it is up to a second old, and none is shown that is
older than five.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from sluice_core.control import FlowPart, FlowState, NodeCapacity, Observation
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.store.operations import REPORT_FRESH, REPORT_RETENTION, read_bandwidth_report, read_idle_flows
from sluice_core.store.store import AsyncStore

#: Names of a report's fields that a controller knows by another name.
_RENAMED: Final = {"storage_policy": "policy"}
Row = TypeVar("Row", bound=NamedTuple)


@dataclass(frozen=True, slots=True)
class BandwidthView:
    """The rows of one report."""

    flows: tuple[FlowState, ...] = ()
    parts: tuple[FlowPart, ...] = ()
    capacities: tuple[NodeCapacity, ...] = ()
    sides: Mapping[str, str] | None = None

    @classmethod
    def from_report(cls, report: BandwidthReport) -> BandwidthView:
        """The rows of ``report``."""
        return cls(
            _rows(FlowState, report.flows),
            _rows(FlowPart, report.parts),
            _rows(NodeCapacity, report.nodes),
            dict(report.sides),
        )

    def add_to(self, observation: Observation) -> Observation:
        """``observation`` with these rows."""
        sides = self.sides or {}
        return replace(observation, flows=self.flows, parts=self.parts, capacities=self.capacities, sides=sides)


async def read_bandwidth(store: AsyncStore) -> BandwidthView | None:
    """The measurements and shares of the last second; None when no host allocates.

    :raises PeerError: when Redis is away
    """
    report, left = await store.run(read_bandwidth_report(store.keys))
    if report is None or REPORT_RETENTION - left > REPORT_FRESH:
        return None
    if report.promises:
        report = report.with_idle(await store.run(read_idle_flows(store.keys, report.promises)))
    return BandwidthView.from_report(report)


def _rows(row: type[Row], rows: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    names = [_RENAMED.get(name, name) for name in row._fields]
    return tuple(row(*(one.get(name, 0.0) for name in names)) for one in rows)
