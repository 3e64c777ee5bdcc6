"""The page of the language and README.md agree with the grammar."""

import re
import runpy
from pathlib import Path

import pytest

from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import PolicyErrors, compile_text
from sluice_dsl.plan import LANGUAGE
from sluice_dsl.syntax.keywords import RESERVED
from sluice_dsl.syntax.scan import DEEPEST
from sluice_dsl.syntax.units import DURATIONS, RATES, SIZES
from sluice_dsl.testing import make_catalogue

ROOM = Path(__file__).parents[2]
GRAMMAR = (ROOM.parent / "docs" / "reference" / "language.md").read_text(encoding="utf-8")
README = (ROOM / "README.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", blocks(GRAMMAR, "sluice") + blocks(README, "sluice"))
def test_every_example_compiles_and_prints_back(example):
    catalogue = make_catalogue()
    for compiled in compile_text(example, catalogue):
        assert compile_text(compiled.text, catalogue)[0].plan == compiled.plan


def test_there_are_examples_of_every_section():
    assert len(blocks(GRAMMAR, "sluice")) >= 5


def test_the_version_and_the_depth_are_those_of_the_code():
    assert GRAMMAR.startswith(f"# The language of Sluice, version {LANGUAGE}\n")
    assert f"may stand {DEEPEST} deep" in GRAMMAR


def test_the_keywords_are_those_of_the_code():
    listed = re.search(r"in any case: ([A-Z\s]+)\.", GRAMMAR)[1].split()
    assert sorted(listed) == sorted(RESERVED)


def test_every_unit_of_the_table_is_one():
    rows = dict(re.findall(r"^\| (size|rate|duration) \| (.*?) \|", GRAMMAR, re.MULTILINE))
    named = {kind: set(re.findall(r"`([A-Za-z/]+)`", row)) for kind, row in rows.items()}
    assert named["size"] == {unit for unit in SIZES if unit.endswith("B")}
    assert named["duration"] == set(DURATIONS) - {""}
    assert {f"B{per}" for per in named["rate"] - {"B"}} <= set(RATES)


def test_the_shown_error_is_what_is_printed():
    (shown,) = blocks(GRAMMAR, "text")
    with pytest.raises(PolicyErrors) as refused:
        compile_text(shown.splitlines()[1].strip(), default_catalogue())
    assert f"{refused.value}\n" == shown


def test_the_readme_example_runs(tmp_path, capsys):
    (example,) = blocks(README, "python")
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out.startswith("FOR TENANT acme DO SET compression WITH level=3 Plan(")
