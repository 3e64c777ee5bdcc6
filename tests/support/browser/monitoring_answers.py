"""Responses of an API about metrics and their history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.support.browser.fake_api import FakeApi

ACCOUNT: Final = "AUTH_x"
#: Metric → its unit, and the level of its history.
METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "GETS_SEC": ("per_second", "tenant"),
    "PUTS_SEC": ("per_second", "tenant"),
    "GET_BW": ("bytes_per_second", "tenant"),
    "NODE_CPU": ("fraction", "node"),
    "NODE_MEMORY": ("fraction", "node"),
    "NODE_DISK_BUSY": ("fraction", "node"),
    "NODE_DISK_READ": ("bytes_per_second", "node"),
    "NODE_DISK_WRITE": ("bytes_per_second", "node"),
    "NODE_NET_IN": ("bytes_per_second", "node"),
    "NODE_NET_OUT": ("bytes_per_second", "node"),
}
_SCALES: Final = {"fraction": 0.01, "bytes_per_second": 1e5}
_TARGETS: Final = {"node": ("node1", "node2"), "tenant": (ACCOUNT,), "container": (f"{ACCOUNT}/logs",)}


def metric(name: str) -> dict[str, Any]:
    """A metric as ``GET /registry/metrics`` shows it."""
    unit, level = METRICS[name]
    levels = ["node"] if level == "node" else ["object", "container", "tenant"]
    told = {"help": "", "type": "gauge", "period": 1.0, "aliases": [], "registered": False, "uploaded": False}
    return {"name": name, "unit": unit, "granularities": levels, "running": True, "revisions": [], **told}


def series(asked: Mapping[str, str]) -> dict[str, Any]:
    """``GET /metrics/history``."""
    name = asked.get("metric", "GETS_SEC")
    levels = ("node",) if METRICS[name][1] == "node" else ("container", "tenant")
    rows = [
        {"metric": name, "level": level, "target": target, "label": "", "rest": False, "of": 0, "step": 1}
        for level in levels
        for target in _TARGETS[level]
    ]
    return {"series": rows, "next_marker": None}


def history(name: str) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """``GET /metrics/<name>/history`` of the last ten minutes, whose middle is a gap."""
    unit, _ = METRICS[name]
    scale = _SCALES.get(unit, 1.0)

    def answer(asked: Mapping[str, str]) -> dict[str, Any]:
        now = int(time.time()) // 10 * 10
        size = 20 + len(asked.get("target", ""))
        values = [None if 25 < place < 32 else scale * (size + place * 7 % 40) for place in range(60)]
        points = [[now - 600 + 10 * place, value, value, value, None] for place, value in enumerate(values)]
        return {"metric": name, "unit": unit, "step": 10, "points": points}

    return answer


def monitoring(api: FakeApi) -> None:
    """Some metrics of two nodes and of one tenant with a container, besides those that the API has already."""
    others = api.answers["GET /registry/metrics"].body["metrics"]
    shown = [*others, *(metric(name) for name in METRICS)]
    api.say("GET /registry/metrics", {"metrics": shown, "next_marker": None})
    api.say("GET /metrics/history", series)
    for name in METRICS:
        api.say(f"GET /registry/metrics/{name}", metric(name))
        if name != "PUTS_SEC":  # which is that of the policies
            api.say(f"GET /metrics/{name}/history", history(name))
