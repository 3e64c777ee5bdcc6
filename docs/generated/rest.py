"""The calls of the REST API, and their rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import django
from docs.generated.markdown import escaped, page, table

from sluice_controller.app.policy_sample import calls_by_rule, declared_rules, sample_policy
from sluice_controller.identity.rules import PARTS

_POLICY: Final = """\
# Who may do what, for the option `policy_file`.  Every rule is here, commented out, at its default, below what it
# is for and the calls that ask it.  `sluice-api --sample-policy` prints the same.

"""
_METHODS: Final = ("get", "post", "put", "delete")


def _paths() -> Mapping[str, Mapping[str, Any]]:
    """Path → method → operation, of the API's schema."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    paths: Mapping[str, Mapping[str, Any]] = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    return paths


def rule_samples() -> dict[str, str]:
    """The sample of the rules."""
    return {"policy.yaml": _POLICY + sample_policy()}


def call_pages() -> dict[str, str]:
    """The page that lists every call."""
    paths = _paths()
    calls: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(paths):
        rows = [(f"`{one.upper()} {path}`", paths[path][one]["summary"]) for one in _METHODS if one in paths[path]]
        calls.setdefault(path.split("/")[1], []).extend((call, escaped(text)) for call, text in rows)
    sections = (part for first, rows in calls.items() for part in (f"## /{first}", table(("call", ""), rows)))
    return {
        "rest-calls.md": page(
            "Calls of the REST API",
            "[The REST API](rest-api.md) says what holds for every call. `GET /schema` has parameters, bodies and "
            "answers.",
            *sections,
        )
    }


def rule_pages() -> dict[str, str]:
    """The page of the rules."""
    asked = calls_by_rule()
    parts = [(f"`{one.name}`", escaped(one.help), f"`{one.check}`") for one in PARTS]
    rules = [
        (
            f"`{one.name}`",
            escaped(one.help),
            f"`{one.check}`",
            ", ".join(f"`{call}`" for call in asked.get(one.name, ())),
        )
        for one in declared_rules()
    ]
    return {
        "rules.md": page(
            "Rules",
            "The option `policy_file` of [`sluice-api`](options-api.md) names a file with other rules: "
            "[sample file](sample/policy.yaml). [Who asks](../admin/identity.md) explains them.",
            "## What rules are made of",
            table(("rule", "holds when", "default"), parts),
            "## Rules of calls",
            table(("rule", "what it allows", "default", "calls"), rules),
        )
    }
