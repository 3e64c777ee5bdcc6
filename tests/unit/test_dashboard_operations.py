"""The dashboard calls operations that the API has."""

import re
from pathlib import Path

import pytest

from sluice_controller.app.policy_sample import declared_rules
from sluice_dashboard.code.kinds import KINDS, NATIVE_OPERATION
from sluice_dashboard.registry.kinds import KINDS as REGISTERED

RULES = {one.name for one in declared_rules()}
PLUGIN = Path(__file__).resolve().parents[2] / "horizon_plugin" / "sluice_dashboard"
TAG = re.compile(r'{%\s*permitted\s+"([^"]+)"')
ATTRIBUTE = re.compile(r"^\s*operations = \(([^)]*)\)", re.MULTILINE)


def asked():
    for path in sorted(PLUGIN.rglob("*.html")):
        for name in TAG.findall(path.read_text()):
            yield name, str(path.relative_to(PLUGIN))
    for path in sorted(PLUGIN.rglob("dashboard.py")):
        for names in ATTRIBUTE.findall(path.read_text()):
            for name in re.findall(r'"([^"]+)"', names):
                yield name, str(path.relative_to(PLUGIN))

    for kind in KINDS.values():
        for name in (*kind.operations.values(), NATIVE_OPERATION):
            yield name, kind.slug


@pytest.mark.parametrize(("name", "where"), list(asked()))
def test_an_operation_that_the_dashboard_asks_for_exists(name, where):
    assert f"sluice:{name}" in RULES, where


@pytest.mark.parametrize("kind", REGISTERED.values(), ids=lambda kind: kind.slug)
def test_what_is_registered_has_an_operation_for_each_button(kind):
    assert {f"sluice:{kind.rule(verb)}" for verb in ("list", "create", "update", "delete")} <= RULES
