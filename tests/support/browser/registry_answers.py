"""Responses of an API about the registry; each kind has an item with the name :data:`NAME`."""

from __future__ import annotations

from typing import Any, Final

from tests.support.browser.fake_api import FakeApi

NAME: Final = "gold"
_MADE: Final = {"created_at": "2026-01-01T00:00:00+00:00", "created_by": "ada@acme"}


def group(field: str, *members: str, **labels: str) -> dict[str, Any]:
    """A group as ``GET /registry/gtenants`` shows it."""
    return {"id": NAME, "name": NAME, field: list(members), "labels": labels, **_MADE}


def stereotype(**changes: Any) -> dict[str, Any]:
    """A stereotype as ``GET /stereotypes`` shows it."""
    text = "FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression"
    return {"name": NAME, "text": text, "help": "documents are kept", **_MADE, **changes}


def registry(api: FakeApi) -> None:
    """One or two of each kind, and the calls that change them."""
    kinds = {
        "gtenants": ("tenants", group("tenants", "AUTH_x", "AUTH_y", AUTH_x="acme")),
        "gcontainers": ("containers", group("containers", "AUTH_x/logs")),
        "gvolumes": ("volumes", group("volumes")),
    }
    for slug, (field, one) in kinds.items():
        _register(api, "/registry", slug, one)
        members = [{"path": path, "label": one["labels"].get(path, "")} for path in one[field]]
        page = {"members": members, "next_marker": None}
        api.say(f"GET /registry/{slug}/{NAME}/{field}", page)
    docs = {"term": "DOCS", "patterns": ["pdf", "doc"], "builtin": True, **_MADE}
    _register(
        api, "/registry", "terms", {"term": NAME, "patterns": ["ods", "text/csv"], "builtin": False, **_MADE}, docs
    )
    alias = {"name": NAME, "of": "filter", "text": "compression", "level": "", "params": {"engine": "zstd"}, **_MADE}
    _register(api, "/registry", "aliases", alias)
    _register(api, "", "stereotypes", stereotype())
    api.say(f"GET /stereotypes/{NAME}", {**stereotype(), "applied": 1})
    applied = {"level": "tenant", "target": "AUTH_x", "label": "acme", "policies": ["p1", "p2"]}
    api.say(f"GET /stereotypes/{NAME}/tenants", {"targets": [applied], "next_marker": None})
    api.say(f"GET /stereotypes/{NAME}/tenants/acme", applied)


def _register(api: FakeApi, root: str, slug: str, one: dict[str, Any], *more: dict[str, Any]) -> None:
    path = f"{root}/{slug}"
    api.say(f"GET {path}", {slug: [one, *more], "next_marker": None})
    api.say(f"POST {path}", one, 201)
    api.say(f"GET {path}/{NAME}", one)
    api.say(f"PUT {path}/{NAME}", one)
    api.say(f"DELETE {path}/{NAME}", None, 204)
