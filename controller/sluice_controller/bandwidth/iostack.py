"""IOStack's table of bandwidth: object server, device, and on it each account and storage policy with its objects.

It speaks of what object servers give, which is what a value of ``/bw`` promises: of GETs alone.  Rates are megabytes
(10^6) per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import GET
from sluice_core.messages.bandwidth_report import BandwidthReport

#: ``{"ip:port": {"sdb1": {"0": {…}}}}``
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]
#: Server, device, account and name of the storage policy.
_Pair = tuple[str, str, str, str]
_MEGABYTE: Final = 1e6
#: What every line is about; IOStack has no other.
_IDENTIFIER: Final = "object"


def osinfo_table(report: BandwidthReport | None, account: str = "") -> Table:
    """What object servers give now, of one account if given; nothing when nobody measures.

    ``needed_BW`` is what the flow may have there; 0 while it is not held back.
    """
    if report is None:
        return {}
    pairs: dict[_Pair, dict[str, Any]] = {}
    for pair, needed in _needed(report):
        _line(pairs, pair)["needed_BW"] += needed
    for pair, moved in _objects(report):
        _line(pairs, pair)["objects"].append(moved)
    found: Table = {}
    for pair in sorted(pairs):
        if account in ("", pair[2]):
            lines = found.setdefault(pair[0], {}).setdefault(pair[1], {})
            lines[str(len(lines))] = pairs[pair]
    return found


def _line(pairs: dict[_Pair, dict[str, Any]], pair: _Pair) -> dict[str, Any]:
    empty = {"account": pair[2], "identifier": _IDENTIFIER, "needed_BW": 0.0, "policy": pair[3], "objects": []}
    return pairs.setdefault(pair, empty)


def _needed(report: BandwidthReport) -> Iterator[tuple[_Pair, float]]:
    servers = {str(one["node"]): str(one["server"]) for one in report.nodes if one.get("server")}
    for one in report.parts:
        if one["method"] == GET and one["side"] == STORAGE_NODE and one["device"]:
            node, share = str(one["node"]), one.get("share")
            pair = (servers.get(node, node), str(one["device"]), str(one["account"]), _policy(report, one["policy"]))
            yield pair, max(float(share or 0.0), 0.0) / _MEGABYTE


def _objects(report: BandwidthReport) -> Iterator[tuple[_Pair, dict[str, Any]]]:
    for one in report.objects:
        if one["method"] == GET:
            server = str(one.get("server") or one["node"])
            pair = (server, str(one["device"]), str(one["account"]), _policy(report, one["policy"]))
            rate = float(one["rate"]) / _MEGABYTE
            yield pair, {"oid": str(one["oid"]), "oid_calculated_BW": rate, "range": str(one["range"])}


def _policy(report: BandwidthReport, index: Any) -> str:
    """A storage policy's name, or its index where that is all that is known."""
    return report.policies.get(str(index), str(index))
