"""Lists from a bandwidth report: flows, nodes, parts of flows on nodes, devices.

Without a fresh report every list is empty and :attr:`ReportTable.stale` is true.  Rates are bytes of payload per
second; None means "not limited".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_controller.validation.parameters import iso_time
from sluice_core.messages.bandwidth_report import BandwidthReport

Row = Mapping[str, Any]
Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One list from a report: rows by their position in the list; ``at`` is Unix time, None without a report.

    ``left_out`` rows are missing in the report of a big cluster; whether they would be in this list is not known.
    ``controllers`` maps a method to the global controller that allocates it.
    """

    at: float | None = None
    rows: Mapping[str, Data] = field(default_factory=dict)
    left_out: int = 0
    controllers: Mapping[str, str] = field(default_factory=dict)

    @property
    def stale(self) -> bool:
        """Whether no host measures now, so that an empty list does not mean that nothing moves."""
        return self.at is None

    def metadata(self) -> Data:
        """The fields of an answer besides its rows."""
        at = None if self.at is None else iso_time(self.at)
        return {"at": at, "stale": self.stale, "left_out": self.left_out, "controllers": dict(self.controllers)}


def flows(report: BandwidthReport | None, accounts: frozenset[str] | None = None, **wanted: str) -> ReportTable:
    """The objectives, share and rate of each flow; of some ``accounts`` if given.

    ``wanted`` are columns and the values to select; empty for any value.
    """

    def data(row: Row, names: Mapping[str, str]) -> Data:
        rates = {name: _rate(row, name) for name in ("floor", "ceiling", "met", "short", "measured")}
        return {
            **_owner(row, names),
            **rates,
            "share": _share(row),
            "waiting": _rate(row, "waiting"),
            "active": bool(row.get("active")),
            "policies": list(row.get("policies", ())),
        }

    rows = report.flows if report else ()
    if accounts is not None:
        rows = tuple(one for one in rows if one.get("account") in accounts)
    return _table(report, "flows", rows, _FLOW, data, wanted)


def nodes(report: BandwidthReport | None, **wanted: str) -> ReportTable:
    """The capacity, share and rate of each side of each node, by method."""

    def data(row: Row, names: Mapping[str, str]) -> Data:
        source = str(row.get("source", "unknown"))
        at = row.get("at")
        return {
            **_texts(row, "node", "server", "side", "method"),
            "capacity": _rate(row, "capacity") if source != "unknown" else None,
            "source": source,
            "assigned": _share(row, "assigned"),
            "measured": _rate(row, "measured"),
            "at": iso_time(at) if isinstance(at, int | float) else None,
        }

    return _table(report, "nodes", report.nodes if report else (), _NODE, data, wanted)


def parts(report: BandwidthReport | None, **wanted: str) -> ReportTable:
    """The rate of each flow by node, side and device."""

    def data(row: Row, names: Mapping[str, str]) -> Data:
        moved = {"share": _share(row), "measured": _rate(row, "measured")}
        return {**_owner(row, names), **_texts(row, "node", "side", "device"), **moved}

    return _table(report, "parts", report.parts if report else (), _PART, data, wanted)


def devices(report: BandwidthReport | None, **wanted: str) -> ReportTable:
    """The rate of each device of the storage nodes, by method; ``share`` is of the flows that are held back."""
    by_device: dict[tuple[str, ...], Data] = {}
    for row in report.parts if report else ():
        if not row.get("device"):
            continue
        key = tuple(str(row.get(name, "")) for name in _DEVICE)
        sums = by_device.setdefault(key, {**_texts(row, *_DEVICE), "flows": 0, "share": None, "measured": 0.0})
        share = _share(row)
        sums["flows"] += 1
        sums["measured"] += _rate(row, "measured")
        if share is not None:
            sums["share"] = (sums["share"] or 0.0) + share
    return _table(report, "parts", by_device.values(), _DEVICE, lambda row, _: dict(row), wanted)


#: The columns that identify a row.
_OWNER: Final = ("account", "container", "method", "policy")
_FLOW: Final = _OWNER
_NODE: Final = ("node", "side", "method")
_PART: Final = (*_OWNER, "node", "side", "device")
_DEVICE: Final = ("node", "device", "method")


def _table(
    report: BandwidthReport | None,
    name: str,
    rows: Iterable[Row],
    key: tuple[str, ...],
    data: Callable[[Row, Mapping[str, str]], Data],
    wanted: Mapping[str, str],
) -> ReportTable:
    if report is None:
        return ReportTable()
    made = (data(row, report.policies) for row in rows)
    chosen = [one for one in made if all(not value or _is(one, column, value) for column, value in wanted.items())]
    shown: dict[str, Data] = {}
    for shown_row in chosen:
        # A space sorts before most characters of names, so that containers follow their account.
        place = " ".join(str(shown_row[part]) for part in key)
        while place in shown:  # idle under two storage policies whose indexes are not known
            place += " "
        shown[place] = shown_row
    return ReportTable(report.at, shown, report.left_out.get(name, 0), report.controllers)


def _is(row: Row, name: str, value: str) -> bool:
    if name == "storage_policy":  # Swift ignores the case of their names
        return value.casefold() in (str(row["policy"]), str(row[name]).casefold())
    return str(row.get(name, "")) == value


def _owner(row: Row, names: Mapping[str, str]) -> Data:
    policy = row.get("policy", 0)
    return {
        **_texts(row, "account", "container", "method"),
        "policy": policy,
        "storage_policy": names.get(str(policy), ""),
    }


def _texts(row: Row, *names: str) -> Data:
    return {name: str(row.get(name, "")) for name in names}


def _rate(row: Row, name: str) -> float:
    found = row.get(name)
    return float(found) if isinstance(found, int | float) else 0.0


def _share(row: Row, name: str = "share") -> float | None:
    """The rate that it may move; None without a limit."""
    found = row.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else None
