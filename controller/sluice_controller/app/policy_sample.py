"""``sluice-api --sample-policy``: a policy file with every rule, its default and the calls that it decides."""

from __future__ import annotations

import os
import re
from collections import defaultdict

import django
from django.apps import apps

from sluice_controller.identity.operations import OPERATIONS, PARTS


def calls_by_rule() -> dict[str, list[str]]:
    """Rule → the calls (``METHOD /path``) that the views' tables give it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    if not apps.ready:
        django.setup()
    # the views can be imported once Django has its settings
    from sluice_controller.app.urls import urlpatterns

    calls: dict[str, list[str]] = defaultdict(list)
    for pattern in urlpatterns:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
        for method, rule in pattern.callback.view_class.rules.items():
            calls[rule].append(f"{method.upper()} /{path}")
    for one in OPERATIONS:
        calls[one.name] += one.calls
    return calls


def sample_policy() -> str:
    """A policy file that changes nothing: every rule commented out, below what it is for."""
    calls = calls_by_rule()
    lines: list[str] = []
    for one in (*PARTS, *OPERATIONS):
        lines += [f"# {text}" for text in (one.help, *calls.get(one.name, ()))]
        lines += [f'#"{one.name}": "{one.check}"', ""]
    return "\n".join(lines)
