"""Responses of an API about filters, metrics, controllers and dependencies: one uploaded item of each."""

from __future__ import annotations

from typing import Any, Final

from tests.support.browser.fake_api import FakeApi

AT: Final = "2026-01-01T00:00:00+00:00"
FILTER: Final = "shout"
METRIC: Final = "DELETES_SEC"
CONTROLLER: Final = "spread"
DEPENDENCY: Final = "words.txt"
#: The targets of deployments.
TARGETS: Final = ("acme", "admin")


def code(text: str) -> dict[str, Any]:
    """The fields of all uploaded code about its two revisions."""
    first = {"revision": 1, "sha256": "b" * 64, "size": 5, "main": "", "uploaded_at": AT, "uploaded_by": text}
    newest = {"revision": 2, "sha256": "a" * 64, "size": 60_000_000, "main": "Shout", "uploaded_at": AT}
    return {**newest, "uploaded_by": text, "revisions": [first]}


def parameter(text: str) -> dict[str, Any]:
    """A parameter of a filter, with all fields of the registry."""
    limits = {"minimum": None, "maximum": None, "range_by": "", "ranges": []}
    return {"name": "word", "type": "str", "help": text, "default": text, "choices": [], "required": False, **limits}


def uploaded_filter(text: str) -> dict[str, Any]:
    """A filter that one of two nodes has and the other refuses."""
    refused = [{"node": "node2", "reason": text, "revision": 1}]
    return {
        "keyword": FILTER,
        "environment": "process",
        "help": text,
        "installed": False,
        "self_service": True,
        "reverse": False,
        "capabilities": {"stage": 220},
        "parameters": [parameter(text)],
        "rollout": {"total": 2, "nodes": 1, "refused": refused, "waiting": [], "away": []},
        **code(text),
    }


def metric(text: str) -> dict[str, Any]:
    """A metric that is measured."""
    known = {"unit": "per_second", "type": "rate", "granularities": ["tenant"], "period": 1.0, "aliases": []}
    return {"name": METRIC, "help": text, "uploaded": True, "registered": False, "running": True, **known, **code(text)}


def controller(text: str) -> dict[str, Any]:
    """A controller that has failed."""
    known = {"metrics": [text], "period": 1.0, "running": True, "state": "failed", "reason": text, "hosts": [text]}
    return {"name": CONTROLLER, "help": text, **known, **code(text)}


def say_code(api: FakeApi, text: str = "what it does", name: str = "shout") -> None:
    """One of each, with ``text`` in every text that a user chose.

    :param name: of a filter that uses the dependency; it has no slash
    """
    end = {"next_marker": None}
    api.say("GET /filters", {"filters": [uploaded_filter(text)], **end})
    api.say(f"GET /filters/{FILTER}", uploaded_filter(text))
    described = {"keyword": FILTER, "parameters": [parameter(text)], "places": ["proxy"], "default_place": "proxy"}
    api.say(f"GET /registry/filters/{FILTER}", described)
    api.say("GET /registry/metrics", {"metrics": [metric(text)], **end})
    api.say(f"GET /registry/metrics/{METRIC}", metric(text))
    measured = {"node": text, "state": "refused", "reason": text, "revision": 1}
    api.say(f"GET /registry/metrics/{METRIC}/instances", {"instances": [measured], **end})
    api.say("GET /controllers", {"controllers": [controller(text)], **end})
    api.say(f"GET /controllers/{CONTROLLER}", controller(text))
    instance = {"host": text, "state": "failed", "reason": text, "revision": 2}
    api.say(f"GET /controllers/{CONTROLLER}/instances", {"instances": [instance], **end})
    dependency = {"id": DEPENDENCY, "name": DEPENDENCY, "help": text, "filters": [name], **code(text)}
    api.say("GET /filters/dependencies", {"dependencies": [dependency], **end})
    api.say(f"GET /filters/dependencies/{DEPENDENCY}", dependency)
    deployed = {"keyword": FILTER, "params_text": text, "place": "proxy", "policy": "p1", "text": text}
    deployed |= {"origin": f"deploy/{FILTER}", "enabled": True}
    for target in TARGETS:
        api.say(f"GET /filters/{target}/deploy", {"filters": [deployed], **end})
        used = {"dependencies": [{"name": DEPENDENCY, "filters": [FILTER]}], **end}
        api.say(f"GET /filters/dependencies/{target}/deploy", used)
