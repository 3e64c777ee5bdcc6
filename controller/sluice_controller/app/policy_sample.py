"""``sluice-api --sample-policy``: a policy file with every rule, its default and the calls that it decides."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import django
from django.apps import apps

from sluice_controller.identity.rules import BY_NAME, PARTS, Rule

if TYPE_CHECKING:
    from sluice_controller.api.openapi import Operation


def declared_operations() -> list[Operation]:
    """All operations; sets up Django if necessary."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    if not apps.ready:
        django.setup()
    # Operations can be imported only after Django has its settings.
    from sluice_controller.api.routes import load_operations

    return load_operations()


def declared_rules() -> list[Rule]:
    """The rules of all operations, by name."""
    declared_operations()
    return [BY_NAME[name] for name in sorted(BY_NAME)]


def calls_by_rule() -> dict[str, list[str]]:
    """Rule → the calls (``METHOD /path``) that use it."""
    calls: dict[str, list[str]] = defaultdict(list)
    for operation in declared_operations():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", operation.path)
        for rule in (operation.rule, *operation.further):
            calls[rule].append(f"{operation.method.upper()} /{path}")
    return calls


def sample_policy() -> str:
    """A policy file without effect: every rule commented out, below its description."""
    calls = calls_by_rule()
    lines: list[str] = []
    for one in (*PARTS, *declared_rules()):
        lines += [f"# {text}" for text in (one.help, *calls.get(one.name, ()))]
        lines += [f'#"{one.name}": "{one.check}"', ""]
    return "\n".join(lines)
