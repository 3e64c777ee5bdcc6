"""``tools/choose-probes``: the probes of one run of the continuous integration."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.support.tool_loader import load_tool

CLONE = Path(__file__).resolve().parents[3]
#: Sources that give a module, a class or a test the marker, or a folder that implies it.
MARKED = re.compile(r"^pytestmark = .*mark\.probe|^\s*@pytest\.mark\.probe|marks=.*mark\.probe", re.MULTILINE)


@pytest.fixture(scope="module")
def script():
    return load_tool("choose-probes")


TABLE = """\
# comment
a.py\t100\tmiddleware
b.py\t200\tcontroller dsl
c.py\t300\tfilters
d.py\t50\tmetrics
"""


@pytest.fixture
def modules(script):
    return script.read_table(TABLE)


def paths(chosen):
    return "".join(module.path[0] for module in chosen)


def test_the_table_names_every_module_with_probes_and_no_other(script):
    listed = [module.path for module in script.read_table(script.TABLE.read_text(encoding="utf-8"))]
    found = {
        file.relative_to(CLONE).as_posix()
        for folder in CLONE.glob("*/")
        if not folder.name.startswith(".")
        for file in folder.rglob("test_*.py")
        if "tests/probe/" in file.as_posix() or MARKED.search(file.read_text(encoding="utf-8"))
    }
    assert sorted(listed) == sorted(found)


def test_folders_of_the_table_exist(script):
    for module in script.read_table(script.TABLE.read_text(encoding="utf-8")):
        assert module.seconds > 0
        for folder in module.folders:
            found = (CLONE / folder).glob("*" if folder.endswith("/") else "sluice_*")
            assert list(found), f"{module.path}: `{folder}`"


@pytest.mark.parametrize(
    ("changed", "turn", "budget", "expected"),
    [
        pytest.param([], 0, 1000, "abcd", id="everything fits"),
        pytest.param([], 0, 300, "ab", id="the first two"),
        pytest.param([], 1, 500, "bc", id="the next two"),
        pytest.param([], 3, 160, "ad", id="turns go round"),
        pytest.param([], 2, 100, "", id="nothing fits"),
        pytest.param(["filters/sluice_filters/chain.py"], 0, 400, "ac", id="what changed, then whose turn it is"),
        pytest.param(["filters/tests/test_chain.py"], 0, 100, "a", id="a unit test is no reason"),
        pytest.param(["b.py"], 2, 0, "b", id="the module itself"),
        pytest.param(
            ["dsl/sluice_dsl/plan.py", "metrics/sluice_metrics/a.py"], 0, 10, "bd", id="due beyond the budget"
        ),
        pytest.param(["core/sluice_core/resolve.py"], 0, 0, "abcd", id="all build on core"),
        pytest.param(["constraints.txt"], 0, 0, "abcd", id="other versions of libraries"),
    ],
)
def test_what_changed_runs_and_the_others_take_turns(script, modules, changed, turn, budget, expected):
    assert paths(script.choose(modules, changed, turn, budget, 1000)) == expected


@pytest.mark.parametrize(
    ("changed", "turn", "limit", "expected"),
    [
        pytest.param(["constraints.txt"], 0, 320, "ab", id="the first two"),
        pytest.param(["constraints.txt"], 2, 450, "acd", id="turns go round"),
        pytest.param(
            ["constraints.txt", "metrics/sluice_metrics/a.py"], 1, 250, "bd", id="what changed itself comes first"
        ),
        pytest.param(["filters/sluice_filters/chain.py", "dsl/sluice_dsl/plan.py"], 1, 310, "c", id="of those, too"),
    ],
)
def test_due_modules_take_turns_beyond_the_limit(script, modules, changed, turn, limit, expected):
    assert paths(script.choose(modules, changed, turn, 0, limit)) == expected


def test_turns_reach_every_module(script, modules):
    assert set("".join(paths(script.choose(modules, [], turn, 300, 1000)) for turn in range(4))) == set("abcd")


def test_a_line_of_another_form_is_named(script):
    with pytest.raises(SystemExit, match=r"probes\.tsv:2: expected path, seconds and folders"):
        script.read_table("a.py\t1\tdsl\nb.py 2 dsl\n")


def test_all_modules_run_when_the_last_full_run_is_not_known(script, monkeypatch, tmp_path):
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=first"], cwd=tmp_path, check=True)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "LAST_FULL", tmp_path / "last-full")
    assert script.changed_files() is None
    script.LAST_FULL.write_text("0" * 40 + "\n", encoding="ascii")  # a commit that is not in this clone
    assert script.changed_files() is None
    script.LAST_FULL.write_text("HEAD\n", encoding="ascii")
    assert script.changed_files() == [""]
