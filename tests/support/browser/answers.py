"""Responses of an API whose cluster has no faults, for :class:`~tests.support.browser.fake_api.FakeApi`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.support.browser import (
    bandwidth_answers,
    monitoring_answers,
    policy_answers,
    registry_answers,
    volume_answers,
)
from tests.support.browser.code_answers import say_code
from tests.support.browser.fake_api import FakeApi

from sluice_controller.app.policy_sample import declared_rules

OPERATIONS: Final = tuple(one.name.removeprefix("sluice:") for one in declared_rules())


def node(name: str, **changes: Any) -> dict[str, Any]:
    """A node as ``GET /nodes`` shows it."""
    return {
        "node": name,
        "state": "ok",
        "detail": "",
        "history": "h1",
        "epoch": 7,
        "refused": [],
        "workers": 3,
        "assignments": 2,
        "dropped": 0,
        "storage": "ready",
        "code": {},
        "sandbox": {},
        "plugins": {},
        "software": "0.1.0",
        "started_at": "2026-01-01T00:00:00+00:00",
        "reported_at": "2026-01-01T00:00:10+00:00",
        **changes,
    }


def flow(account: str, **changes: Any) -> dict[str, Any]:
    """A flow as ``GET /bw/flows`` shows it."""
    return {
        "account": account,
        "label": "",
        "container": "",
        "method": "GET",
        "policy": 0,
        "storage_policy": "gold",
        "floor": 10e6,
        "ceiling": 0.0,
        "share": 20e6,
        "measured": 11e6,
        "met": 10e6,
        "short": 0.0,
        "waiting": 0.0,
        "active": True,
        "policies": [],
        **changes,
    }


def event(number: int, **changes: Any) -> dict[str, Any]:
    """An event as ``GET /events`` shows it."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return {
        "id": f"{number}-0",
        "at": at,
        "severity": "warning",
        "kind": "refused",
        "node": "node1",
        "policy": "p1",
        "subject": "",
        "text": f"event {number}",
        "source": "node1",
        "fields": {},
        **changes,
    }


def overview(policies: int = 2, **cluster: Any) -> dict[str, Any]:
    """``GET /overview`` of a cluster without faults except ``cluster``: ``nodes``, ``hosts``, ``dependencies``."""
    parts = ("redis", "actors", "broker", "nodes", "keystone")
    return {
        "policies": {"total": policies, "active": policies, "waiting": 0, "failed": 0, "disabled": 0, "refused": 0},
        "floors": {"short": 0, "shortfall": 0.0, "stale": False},
        "cluster": {
            "hosts": {"alive": 1, "away": 0},
            "dependencies": dict.fromkeys(parts, "ok"),
            **cluster,
        },
    }


def say_nodes(api: FakeApi, *nodes: Mapping[str, Any]) -> None:
    """Set the nodes of the cluster, also in the overview."""
    states = Counter(one["state"] for one in nodes)
    counts = {state: states[state] for state in ("ok", "stale_history", "failed", "away")}
    refusing = sum(1 for one in nodes if one["refused"])

    def page(asked: Mapping[str, str]) -> dict[str, Any]:
        shown = [one for one in nodes if asked.get("state", one["state"]) == one["state"]]
        if "refusing" in asked:
            shown = [one for one in shown if one["refused"]]
        return {"nodes": shown, "next_marker": None, "head": {"history": "h1", "epoch": 7}}

    api.say("GET /nodes", page)
    for one in nodes:
        api.say(f"GET /nodes/{one['node']}", one)
    api.say("GET /overview", overview(nodes={"total": len(nodes), **counts, "refusing": refusing}))


def well(api: FakeApi) -> None:
    """Two nodes, two policies, one floor, one event; no faults."""
    api.say("GET /permissions", {"permissions": dict.fromkeys(OPERATIONS, True)})
    say_nodes(api, node("node1"), node("node2"))
    policy_answers.policies(api)
    bandwidth_answers.bandwidth(api)
    registry_answers.registry(api)
    measured = {"at": None, "stale": False, "left_out": 0, "controllers": {}, "next_marker": None}
    api.say("GET /bw/flows", {"flows": [flow("AUTH_x", label="acme")], **measured})
    api.say("GET /events", {"events": [event(1)], "next_marker": None, "last": "1-0"})
    say_code(api)
    monitoring_answers.monitoring(api)
    api.say("GET /metrics/history", _series)
    volume_answers.well(api)


def _series(asked: Mapping[str, str]) -> dict[str, Any]:
    parts = asked.get("metric", "").startswith(("PART_", "DEVICE_"))
    return bandwidth_answers.part_series(asked) if parts else monitoring_answers.series(asked)
