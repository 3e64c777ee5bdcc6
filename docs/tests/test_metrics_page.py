"""The sentences of docs/reference/metrics.md compile, and the offline vocabulary agrees."""

import re
from pathlib import Path

import pytest

from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_metrics.registry import BUILT_IN, descriptions

PAGE = (Path(__file__).resolve().parents[1] / "reference" / "metrics.md").read_text()


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.info.name)
def test_the_offline_vocabulary_has_it_as_it_describes_itself(one):
    assert default_catalogue().metrics[one.info.name] == one.info


def test_the_offline_vocabulary_has_the_shipped_metrics():
    assert default_catalogue().metrics == descriptions()


@pytest.mark.parametrize("text", re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_its_sentences_compile_without_a_warning(text):
    assert [one.warnings for one in compile_text(text, default_catalogue())] == [()] * len(text.splitlines())
