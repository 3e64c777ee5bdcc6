"""Responses of an API about bandwidth: objectives, nodes, devices, parts, and their history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.support.browser.fake_api import FakeApi

_MEASURED: Final[Mapping[str, Any]] = {
    "at": None,
    "stale": False,
    "left_out": 0,
    "controllers": {},
    "next_marker": None,
}


def objective(**changes: Any) -> dict[str, Any]:
    """An objective as ``GET /bw/slo`` shows it."""
    return {
        "account": "AUTH_x",
        "label": "acme",
        "name": "get_bw",
        "value": 30e6,
        "text": "30MBps",
        "storage_policy": "",
        "policy": "p1",
        "enabled": True,
        "infeasible": None,
        **changes,
    }


def node_row(**changes: Any) -> dict[str, Any]:
    """A side of a node as ``GET /bw/nodes`` shows it."""
    return {
        "node": "node1",
        "server": "127.0.0.1:6200",
        "side": "storage_node",
        "method": "GET",
        "capacity": 100e6,
        "source": "configured",
        "assigned": None,
        "measured": 40e6,
        "at": "2026-01-01T00:00:00+00:00",
        **changes,
    }


def measured(**lists: Any) -> dict[str, Any]:
    """A page of measured values."""
    return {**_MEASURED, **lists}


def history(unit: str, value_at: Callable[[int], float | None], seconds: int = 300) -> dict[str, Any]:
    """A metric of the last ``seconds``, with a value of ``value_at`` for each of them."""
    now = int(time.time())
    points = [[now - seconds + one, value_at(one), None, None, None] for one in range(seconds)]
    return {"metric": "", "unit": unit, "step": 1, "points": points}


def _wave(low: float, high: float, period: int) -> Callable[[int], float]:
    return lambda second: low + (high - low) * abs((second % period) * 2 - period) / period


def bandwidth(api: FakeApi) -> None:
    """Two tenants on two devices of one node."""
    api.say("GET /bw/slo", {"slos": [objective(), objective(name="max_get_bw", value=60e6)], "next_marker": None})
    sides = [("proxy", "GET"), ("proxy", "PUT"), ("storage_node", "GET"), ("storage_node", "PUT")]
    rows = [node_row(side=side, method=method) for side, method in sides]
    api.say("GET /bw/nodes", lambda asked: measured(nodes=[one for one in rows if _is_asked(one, asked)]))
    device = {"node": "node1", "device": "sdb1", "method": "GET", "flows": 2, "share": None, "measured": 25e6}
    devices = [device, {**device, "device": "sdc1", "measured": 15e6}]
    api.say("GET /bw/devices", lambda asked: measured(devices=[one for one in devices if _is_asked(one, asked)]))
    part = {
        "account": "AUTH_x",
        "label": "acme",
        "container": "",
        "method": "GET",
        "policy": 0,
        "storage_policy": "gold",
    }
    part |= {"node": "node1", "side": "storage_node", "device": "sdb1", "share": None, "measured": 20e6}
    api.say("GET /bw/parts", measured(parts=[part, {**part, "account": "AUTH_y", "label": "", "measured": 5e6}]))
    rate = "bytes_per_second"
    for method in ("GET", "PUT"):
        api.say(f"GET /metrics/{method}_BW_MEASURED/history", history(rate, _wave(8e6, 34e6, 60)))
        api.say(f"GET /metrics/{method}_BW_SHARE/history", history(rate, _wave(28e6, 36e6, 90)))
        api.say(f"GET /metrics/{method}_BW_FLOOR/history", history(rate, lambda second: 30e6))
        api.say(f"GET /metrics/{method}_BW_CEILING/history", history(rate, lambda second: 60e6))
    for method in ("GET", "PUT", "REPLICATION"):
        api.say(f"GET /metrics/NODE_{method}_BW_MEASURED/history", history(rate, _wave(50e6, 70e6, 60)))
        api.say(f"GET /metrics/DEVICE_{method}_BW_MEASURED/history", history(rate, _wave(20e6, 35e6, 60)))
        api.say(f"GET /metrics/PART_{method}_BW_MEASURED/history", history(rate, _wave(10e6, 20e6, 60)))


def _is_asked(row: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    return all(asked.get(name, value) == value for name, value in row.items())


def part_series(asked: Mapping[str, str]) -> dict[str, Any]:
    """Two parts below any requested place."""
    metric, level, place = (*asked.get("prefix", "").split(" ", 2), "", "")[:3]
    names = ("sdb1", "sdc1") if level == "device" else ("AUTH_x", "AUTH_y")
    row = {"metric": metric, "level": level, "rest": False, "of": 0, "step": 1, "since": "2026-01-01T00:00:00+00:00"}
    row["label"] = ""
    return {"series": [{**row, "target": f"{place}{one}"} for one in names], "next_marker": None}
