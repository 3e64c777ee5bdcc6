"""Every file, class and function that the architecture page names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contributor" / "architecture.md").read_text()
PLACES = sorted(set(re.findall(r"`((?:sluice_\w+|tools|dsl)/[\w/.-]+?)(?::([\w.]+))?`", PAGE)))


def names(tree, prefix=""):
    """Qualified names of classes, functions and module-level assignments."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from names(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_a_place_on_the_page_exists(path, name):
    files = [ROOT / path] if (ROOT / path).exists() else list(ROOT.glob(f"*/{path}"))
    assert len(files) == 1, f"{path}: {files}"
    if name:
        assert name in set(names(ast.parse(files[0].read_text()))), f"{name} is not in {path}"


def test_each_walk_and_twenty_questions_are_there():
    assert len(re.findall(r"^## Walk ", PAGE, re.MULTILINE)) == 6
    assert PAGE.count("\n| ") - 1 >= 20
    assert len(PLACES) > 60
