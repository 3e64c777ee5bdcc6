"""Bandwidth of tenants for Prometheus: the rows of ``/bw/flows`` and ``/bw/parts`` as gauges.

They contain names of tenants and containers, so they need a token and are not part of ``/metrics``.  All values come
from Redis: without Redis the answer is an error, and the target is down for Prometheus.  An answer without tenants
would mean that nothing moves.  The number of series is bounded like the rows of the report.
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

    A flow is not on one node: with a node, side or device the answer has parts alone.

    :raises PeerError: when Redis is unreachable
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
            "payload that a tenant or container moves, its share and its objectives",
            _OWNER,
            _PROMISED,
            flows.rows.values(),
        )
        yield _rates(
            "sluice_bandwidth_part_bytes_per_second",
            "payload that a tenant or container moves on a device or proxy, and its share there",
            (*_PLACE, *_OWNER),
            _MOVED,
            parts.rows.values(),
        )
        left_out = {} if self._report is None else {"flows": flows.left_out, "parts": parts.left_out}
        text = "rows without a series in a big cluster, whatever the query selects"
        yield gauges("sluice_bandwidth_rows_left_out", text, "list", left_out)
        text = "age of the measurement; +Inf while no host measures"
        yield GaugeMetricFamily("sluice_bandwidth_picture_age_seconds", text, self._age)


_PLACE: Final = ("node", "side", "device")
_OWNER: Final = ("account", "container", "method", "storage_policy")
_MOVED: Final = ("measured", "share")
_PROMISED: Final = (*_MOVED, "floor", "met", "short", "ceiling")
#: Quantities for which 0 means that there is none.
_IF_ANY: Final = frozenset({"floor", "short", "ceiling"})


def _rates(name: str, text: str, labels: tuple[str, ...], whats: tuple[str, ...], rows: Iterable[Row]) -> Metric:
    """A series for each of ``whats`` that applies to a row; rows with equal labels are summed."""
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
    """The sum of two rates; unlimited if one of them is."""
    return None if one is None or other is None else one + other


def _applies(what: str, row: Mapping[str, float | None]) -> bool:
    if what == "met":
        return bool(row["floor"])
    return bool(row[what]) or what not in _IF_ANY


def _label(row: Row, name: str) -> str:
    text = str(row[name])
    if name == "storage_policy":
        if row["method"] == REPLICATION:  # of all storage policies together
            return ""
        text = text or ("" if row["policy"] == ANY_POLICY else str(row["policy"]))
    # Half a surrogate pair cannot be encoded.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
