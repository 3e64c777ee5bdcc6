"""The sentences of docs/admin/bandwidth.md compile; its parameters are those of the language."""

import re
from pathlib import Path

import pytest

from sluice_dsl.catalogue.vocabulary import KNOWN_ACTIONS
from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue

PAGE = (Path(__file__).resolve().parents[1] / "admin" / "bandwidth.md").read_text()
SENTENCES = re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", SENTENCES)
def test_its_sentences_compile_without_a_warning_and_print_back(text):
    for compiled in compile_text(text, make_catalogue()):
        assert compiled.warnings == ()
        assert compile_text(compiled.text, make_catalogue())[0].plan == compiled.plan


def test_it_names_every_parameter():
    table = PAGE.partition("\n| parameter |")[2].partition("\n\n")[0]
    rows = "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert {one.name for one in KNOWN_ACTIONS["bandwidth"].parameters} == set(re.findall(r"`(\w+)`", rows))
    assert len(SENTENCES) == 3
