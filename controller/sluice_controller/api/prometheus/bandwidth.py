"""Bandwidth of tenants for Prometheus: the rows of ``/bw/flows`` and ``/bw/parts`` as gauges.

Names of tenants and containers are in it, so that it takes a token and is no part of ``/metrics``.  All of it comes
from Redis: without that it is an error, and the target is down for Prometheus.  An answer without tenants would
mean that nothing moves.  The number of series is bounded as the rows of the report are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_controller.api.prometheus.cluster import gauges
from sluice_controller.bandwidth import report_tables
from sluice_controller.catalog import nodes
from sluice_controller.catalog.backend import Backend
from sluice_core.messages.bandwidth import ANY_POLICY, REPLICATION
from sluice_core.messages.bandwidth_report import BandwidthReport

Row = Mapping[str, Any]


def exposition(backend: Backend, **wanted: str) -> bytes:
    """The rows whose columns have the ``wanted`` values, in Prometheus' text format.

    A flow is on no one node: where a node, side or device is wanted there are parts alone.

    :raises PeerError: when Redis is away
    """
    report, age = nodes.report_and_age(backend, idle=True)
    found: bytes = generate_latest(ReportCollector(report, age, wanted))
    return found


class ReportCollector(Collector):
    """One report, ``age`` seconds old; without a report only the age."""

    def __init__(self, report: BandwidthReport | None, age: float, wanted: Mapping[str, str]) -> None:
        self._report = report
        self._age = age
        self._wanted = wanted

    def collect(self) -> Iterator[Metric]:
        """Called for each exposition."""
        flows = report_tables.flows(self._report, None, **self._wanted)
        parts = report_tables.parts(self._report, **self._wanted)
        yield _rates(
            "sluice_bandwidth_flow_bytes_per_second",
            "payload that a tenant or container moves, may move and is promised",
            _OWNER,
            _PROMISED,
            flows.rows.values(),
        )
        yield _rates(
            "sluice_bandwidth_part_bytes_per_second",
            "payload that a tenant or container moves and may move on a device or proxy",
            (*_PLACE, *_OWNER),
            _MOVED,
            parts.rows.values(),
        )
        left_out = {} if self._report is None else {"flows": flows.left_out, "parts": parts.left_out}
        text = "rows of a big cluster that have no series, whether they were asked for or not"
        yield gauges("sluice_bandwidth_rows_left_out", text, "list", left_out)
        text = "since this was measured; +Inf while nobody measures"
        yield GaugeMetricFamily("sluice_bandwidth_picture_age_seconds", text, self._age)


_PLACE: Final = ("node", "side", "device")
_OWNER: Final = ("account", "container", "method", "storage_policy")
_MOVED: Final = ("measured", "share")
_PROMISED: Final = (*_MOVED, "floor", "met", "short", "ceiling")
#: Those that 0 is none of.
_IF_ANY: Final = frozenset({"floor", "short", "ceiling"})


def _rates(name: str, text: str, labels: tuple[str, ...], whats: tuple[str, ...], rows: Iterable[Row]) -> Metric:
    """A series of each of ``whats`` that applies to a row; rows with equal labels are summed."""
    merged: dict[tuple[str, ...], dict[str, float | None]] = {}
    for row in rows:
        key = tuple(_label(row, label) for label in labels)
        sums = merged.get(key)
        merged[key] = {what: row[what] if sums is None else _sum(sums[what], row[what]) for what in whats}
    family = GaugeMetricFamily(name, text, labels=(*labels, "what"))
    for key, sums in merged.items():
        for what, value in sums.items():
            if _applies(what, sums) and value is not None:
                family.add_metric((*key, what), value)
    return family


def _sum(one: float | None, other: float | None) -> float | None:
    """The sum of two rates; unlimited when one of them is."""
    return None if one is None or other is None else one + other


def _applies(what: str, row: Mapping[str, float | None]) -> bool:
    if what == "met":
        return bool(row["floor"])
    return bool(row[what]) or what not in _IF_ANY


def _label(row: Row, name: str) -> str:
    text = str(row[name])
    if name == "storage_policy":
        if row["method"] == REPLICATION:  # of all of them together
            return ""
        text = text or ("" if row["policy"] == ANY_POLICY else str(row["policy"]))
    # half a surrogate pair is no text that could be sent
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
