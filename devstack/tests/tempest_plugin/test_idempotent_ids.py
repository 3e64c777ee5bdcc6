"""Tempest identifies a test by its id, independent of its name: each test of the plugin has a unique one."""

import ast
import uuid
from pathlib import Path

import sluice_tempest_plugin

TESTS = Path(sluice_tempest_plugin.__file__).parent / "tests"


def ids(function):
    """The ``@decorators.idempotent_id`` of a test."""
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    return [one.args[0].value for one in calls if ast.unparse(one.func) == "decorators.idempotent_id"]


def test_each_test_has_one_id_that_no_other_has():
    functions = [
        node
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len(functions) > 30
    without = [one.name for one in functions if len(ids(one)) != 1]
    assert not without
    found = [uuid.UUID(ids(one)[0]) for one in functions]
    assert len(set(found)) == len(found)
