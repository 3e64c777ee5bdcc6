"""IOStack's documents about bandwidth: its table of streams, and the overview of object servers.

Both contain the rates of object servers, for GETs and PUTs; each copy of an upload counts where it is written.  Rates
are megabytes (10^6) per second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import ANY_POLICY, GET, PUT
from sluice_core.messages.bandwidth_report import BandwidthReport

#: ``{"ip:port": {"sdb1": {"0": {…}}}}``
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]
#: ``{"ip:port": {"AUTH_acme": {"gold": 20.0}}}``
Overview = dict[str, dict[str, dict[str, float]]]
#: A row of a report.
_Row = Mapping[str, Any]
_METHODS: Final = (GET, PUT)
_MEGABYTE: Final = 1e6
#: The identifier of every line; IOStack has no other.
_IDENTIFIER: Final = "object"


class _Place(NamedTuple):
    """The keys of a line of the table; lines are in this order."""

    server: str
    device: str
    account: str
    storage_policy: str
    method: str


@dataclass(slots=True)
class _Line:
    """Containers whose objects are counted by themselves (empty: the tenant's) → the rate of their floor; streams."""

    asked: dict[str, float] = field(default_factory=dict)
    streams: list[dict[str, Any]] = field(default_factory=list)

    def to_data(self, place: _Place) -> dict[str, Any]:
        return {
            "account": place.account,
            "identifier": _IDENTIFIER,
            "method": place.method,
            "needed_BW": sum(self.asked.values()) / _MEGABYTE,
            "policy": place.storage_policy,
            "objects": self.streams,
        }


def osinfo_table(report: BandwidthReport | None, account: str = "") -> Table:
    """The current rates of object servers, stream by stream, of one account if given; empty if no host measures.

    ``needed_BW`` is the tenant's floor: the one on each object server, else the one over the whole cluster; 0 without
    a floor.
    """
    if report is None:
        return {}
    asked, servers = _AskedRates(report), _Servers(report)
    lines: defaultdict[_Place, _Line] = defaultdict(_Line)
    for row in _parts(report):
        lines[_place(report, servers, row)].asked[row["container"]] = asked.rate(row, row["container"])
    for row in report.objects:
        if row["method"] in _METHODS:
            line = lines[_place(report, servers, row)]
            if not line.asked:
                line.asked[""] = asked.rate(row, "")
            line.streams.append(_stream(row))
    table: Table = {}
    for place in sorted(lines):
        if account in ("", place.account):
            numbered = table.setdefault(place.server, {}).setdefault(place.device, {})
            numbered[str(len(numbered))] = lines[place].to_data(place)
    return table


def overview(report: BandwidthReport | None) -> Overview:
    """The rate of each tenant and storage policy on each object server; empty if no host measures."""
    if report is None:
        return {}
    servers = _Servers(report)
    sums: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for row in _parts(report):
        place = _place(report, servers, row)
        sums[place.server, place.account, place.storage_policy] += float(row["measured"]) / _MEGABYTE
    rates: Overview = {}
    for (server, account, storage_policy), rate in sorted(sums.items()):
        rates.setdefault(server, {}).setdefault(account, {})[storage_policy] = rate
    return rates


def _parts(report: BandwidthReport) -> Iterator[_Row]:
    """The rows of flows on devices of object servers."""
    for row in report.parts:
        if row["method"] in _METHODS and row["side"] == STORAGE_NODE and row["device"]:
            yield row


def _place(report: BandwidthReport, servers: _Servers, row: _Row) -> _Place:
    # a storage policy's index if its name is not known
    storage_policy = report.policies.get(str(row["policy"]), str(row["policy"]))
    return _Place(servers.address(row), str(row["device"]), str(row["account"]), storage_policy, str(row["method"]))


def _stream(row: _Row) -> dict[str, Any]:
    rate = float(row["rate"]) / _MEGABYTE
    return {"oid": f"/{row['account']}/{row['oid']}", "oid_calculated_BW": rate, "range": str(row["range"])}


class _Servers:
    """The object servers of nodes, and of devices whose server is another one."""

    def __init__(self, report: BandwidthReport) -> None:
        self._nodes = {str(one["node"]): str(one["server"]) for one in report.nodes if one.get("server")}
        self._devices = {
            (str(one["node"]), str(one["device"])): str(one["server"]) for one in report.objects if one.get("server")
        }

    def address(self, row: _Row) -> str:
        """``ip:port`` of the object server of a row; the node's name if it is not known."""
        node = str(row["node"])
        return self._devices.get((node, str(row["device"]))) or self._nodes.get(node, node)


class _AskedRates:
    """The rates of the objectives in force, by flow."""

    def __init__(self, report: BandwidthReport) -> None:
        self._rates: dict[tuple[Any, ...], float] = {}
        for row in report.flows:
            # A report of an older actor host does not have the rates of the objectives themselves.
            rate = row.get("node_asked") or row.get("asked", row.get("floor", 0.0))
            self._rates[row["account"], row["container"], row["method"], row["policy"]] = float(rate)

    def rate(self, row: _Row, container: str) -> float:
        """The floor of the flow of ``row`` in bytes per second, 0 without one."""
        flow = row["account"], container, row["method"]
        # An idle objective for all storage policies is a flow without a storage policy.
        return self._rates.get((*flow, row["policy"]), self._rates.get((*flow, ANY_POLICY), 0.0))
