"""Responses of an API about policies and about sentences that are being written."""

from __future__ import annotations

import time
from typing import Any

from tests.support.browser.fake_api import FakeApi


def policy(number: int, **changes: Any) -> dict[str, Any]:
    """A policy as ``GET /policies`` shows it."""
    return {
        "id": f"p{number}",
        "version": 1,
        "state": "active",
        "enabled": True,
        "reason": "",
        "created_at": "2026-01-01T00:00:00+00:00",
        "created_by": "ada@acme",
        "origin": "",
        "policy": f"FOR CONTAINER acme/c{number} DO SET compression",
        "source": f"FOR CONTAINER acme/c{number} DO SET compression",
        "dynamic": False,
        "target": {"level": "container", "select": "name", "name": f"AUTH_x/c{number}", "label": f"acme/c{number}"},
        "condition": "",
        "conditions": [],
        "sustained": 0.0,
        "actions": [],
        "epoch": 7,
        "enforced": {"total": 2, "nodes": 2, "refused": [], "waiting": [], "away": []},
        "firings": [],
        "observed": None,
        "activations": [],
        "infeasible": None,
        "warnings": [],
        **changes,
    }


def condition(metric: str, **changes: Any) -> dict[str, Any]:
    """A part of a policy's condition."""
    known = {"level": "tenant", "path": "AUTH_x", "operator": ">", "value": 3.0, "unit": "per_second"}
    return {"metric": metric, **known, **changes}


def problem(message: str, column: int, end_column: int, **changes: Any) -> dict[str, Any]:
    """An error in the first line of a text."""
    known = {"line": 1, "caret": "", "near_miss": "", "severity": "error", "code": "unknown"}
    return {"message": message, "column": column, "end_column": end_column, **known, **changes}


def checked(**changes: Any) -> dict[str, Any]:
    """A sentence as ``POST /policies/check`` shows it."""
    return {
        "policy": "FOR TENANT AUTH_x WHEN PUTS_SEC > 3 DO SET compression",
        "warnings": [],
        "explanation": [{"about": "target", "text": "tenant acme"}, {"about": "fires", "text": "PUTS_SEC above 3/s"}],
        "overrides": [{"policy": "p2", "kind": "filter", "keyword": "compression", "reason": "narrower"}],
        "overridden_by": [],
        "more_overridden": False,
        "refusal": "",
        **changes,
    }


def policies(api: FakeApi) -> None:
    """Two policies: the first watches a metric and has fired, the second is static."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 60))
    sentence = "FOR TENANT acme WHEN PUTS_SEC > 3 DO SET compression"
    fired = [{"at": at, "what": "set", "member": "", "window": 1}]
    seen = {"window": 1, "values": {"PUTS_SEC": 5.0}, "members": {}, "units": {"PUTS_SEC": "per_second"}}
    target = {"level": "tenant", "select": "name", "name": "AUTH_x", "label": "acme"}
    watches = {"dynamic": True, "target": target, "conditions": [condition("PUTS_SEC")], "observed": seen}
    first = policy(1, source=sentence, firings=fired, **watches)
    page = {"policies": [first, policy(2)], "next_marker": None, "previous_marker": None, "total": 2}
    api.say("GET /policies", page)
    api.say("GET /policies/p1", first)
    api.say("GET /policies/p2", policy(2))
    api.say("POST /policies/check", {"policies": [checked()]})
    api.say("POST /policies/complete", {"start": 0, "end": 0, "candidates": [], "more": False})
    before = {"policy": sentence, "enabled": True, "created_by": "ada@acme"}
    change = {"what": "policy", "name": "p1", "how": "delete", "before": before, "after": None}
    api.say("POST /policies/p1/undo", {"plan": True, "epoch": 7, "version": 7, "changes": [change]})
    now = int(time.time())
    points = [[now - 120 + second, float(second % 9), 0.0, 9.0, None] for second in range(120)]
    api.say("GET /metrics/PUTS_SEC/history", {"metric": "PUTS_SEC", "unit": "per_second", "step": 1, "points": points})
