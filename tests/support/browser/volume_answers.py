"""Responses of an API about volumes, changes and locality, for :class:`~tests.support.browser.fake_api.FakeApi`."""

from __future__ import annotations

from typing import Any, Final

from tests.support.browser.fake_api import FakeApi

VOLUME: Final = "0d2f61d0-54b5-4d4a-a4a3-9b0d6c1d7e11"
PROJECT: Final = "5f0c2b7e6a914f13a9d5c4b3e2f1a0d9"
POOL: Final = "node1@nbd#fast"
AT: Final = "2026-01-01T00:00:00+00:00"


def volume(**changes: Any) -> dict[str, Any]:
    """A volume as ``GET /volumes/{volume}`` shows it."""
    return {
        "id": VOLUME,
        "name": "data1",
        "project": PROJECT,
        "status": "in-use",
        "size": 10,
        "cinder_size": 11,
        "tier": "gold",
        "type": "gold",
        "pool": POOL,
        "attachments": [{"id": "a1", "host": "node1"}],
        "node": "node1",
        "filters": [{"keyword": "luks", "params": {}}, {"keyword": "xor", "params": {"key": 7}}],
        "filters_fixed_at": AT,
        "header": 2068480,
        "path": f"AUTH_{PROJECT}/{VOLUME}",
        "known": True,
        "created_at": "2026-01-01T00:00:00.000000",
        "rates": {"max_bw": 3e6},
        "rates_in_force": {"max_bw": 3e6, "read_iops": 900.0},
        "fault": None,
        "data_path": "fuse",
        **changes,
    }


def operation(number: int, what: str = "attach", **changes: Any) -> dict[str, Any]:
    """An operation as ``GET /volumes/operations`` shows it."""
    return {
        "id": f"{number:032x}",
        "what": what,
        "state": "done",
        "reason": "",
        "step": "exported",
        "volume": VOLUME,
        "project": PROJECT,
        "data": {"node": "node1", "device": "/dev/loop7"},
        "created_at": AT,
        "ended_at": AT,
        "created_by": "alice@acme",
        **changes,
    }


def pool(**changes: Any) -> dict[str, Any]:
    """A pool as ``GET /volumes/pools`` shows it."""
    return {
        "name": POOL,
        "total": 2e12,
        "free": 5e11,
        "capabilities": {"fabric": "nbd", "bandwidth": "400"},
        "seen_at": AT,
        **changes,
    }


def tier(**changes: Any) -> dict[str, Any]:
    """A tier as ``GET /volumes/tiers`` shows it."""
    return {
        "name": "gold",
        "resiliency": "2",
        "bandwidth": 50e6,
        "iops": None,
        "fabric": "nbd",
        "cost": 5.0,
        "state": "drifted",
        "drift": ["name: `old`, expected `gold`"],
        "type": "t1",
        "pools": [pool()],
        "created_at": AT,
        "created_by": "ada@acme",
        **changes,
    }


def change(epoch: int, **changes: Any) -> dict[str, Any]:
    """A change as ``GET /changes/{epoch}`` shows it."""
    difference = {
        "what": "policy",
        "name": "p1",
        "how": "replace",
        "before": {"policy": "FOR TENANT acme DO SET noop", "enabled": True, "created_by": "ada@acme"},
        "after": {"policy": "FOR TENANT acme DO SET compression", "enabled": True, "created_by": "ada@acme"},
    }
    return {
        "epoch": epoch,
        "at": AT,
        "by": "ada@acme",
        "policies": ["p1"],
        "filters": [],
        "metrics": [],
        "controllers": [],
        "entries": [],
        "set": 1,
        "taken_back": 1,
        "history": "h1",
        "assignments": [],
        "dropped": [],
        "differences": [difference],
        **changes,
    }


def well(api: FakeApi) -> None:
    """One volume, one tier, one pool, two changes."""
    end = {"next_marker": None}
    api.say("GET /volumes", {"volumes": [volume()], **end})
    api.say(f"GET /volumes/{VOLUME}", volume())
    snapshot = {"id": "s1", "name": "monday", "status": "available", "size": 11, "created_at": AT}
    api.say(f"GET /volumes/{VOLUME}/snapshots", {"snapshots": [snapshot]})
    done, running = operation(1), operation(2, "extend", state="under_way", step="asked")
    api.say("GET /volumes/operations", {"operations": [done, running], **end})
    for one in (done, running):
        api.say(f"GET /volumes/operations/{one['id']}", one)
    api.say("GET /volumes/tiers", {"tiers": [tier()], **end})
    figures = {"read_bw": 90e6, "write_bw": 80e6, "read_iops": 9e3, "write_iops": 7e3}
    measured = {"pool": POOL, **figures, "measured_at": AT, "measured_by": "ada@acme", "node": "node1"}
    api.say("GET /volumes/pools", {"pools": [pool()], "measured": [measured]})
    place = {"account": f"AUTH_{PROJECT}", "container": "", "object": "", "volume": VOLUME}
    api.say("GET /effective", {"target": place, "request": {}, "epoch": 7, "kinds": []})
    page = {"head": {"history": "h1", "epoch": 7}, "trimmed": True, "oldest": {"epoch": 2, "at": AT}, **end}
    api.say("GET /changes", {"changes": [change(7), change(6)], **page})
    api.say("GET /changes/7", change(7))
    plan = {"plan": True, "epoch": 7, "version": 3, "create": 0, "replace": 1, "delete": 0}
    api.say("POST /changes/7/rollback", {**plan, "changes": change(7)["differences"]})
    api.say("GET /placements", {"placements": [], **end})
