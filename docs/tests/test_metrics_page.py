"""docs/reference/metrics.md has every shipped metric, its sentences compile, and the offline vocabulary agrees."""

import re
from pathlib import Path

import pytest

from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue
from sluice_metrics.registry import BUILT_IN

PAGE = (Path(__file__).resolve().parents[1] / "reference" / "metrics.md").read_text()


def test_the_table_has_every_metric_with_its_levels():
    rows = re.findall(r"^\| (`.*?) \| .*? \| (.*?) \|", PAGE, re.MULTILINE)
    levels = {}
    for names, those in rows:
        levels |= dict.fromkeys(re.findall(r"`(\w+)`", names), those)
    assert set(levels) == {one.info.name for one in BUILT_IN}
    for one in BUILT_IN:
        if levels[one.info.name] != "the same":
            assert set(levels[one.info.name].split(", ")) == set(one.info.granularities)


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.info.name)
def test_the_offline_vocabulary_has_it_as_it_describes_itself(one):
    assert default_catalogue().metrics[one.info.name] == one.info


@pytest.mark.parametrize("text", re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_its_sentences_compile_without_a_warning(text):
    assert [one.warnings for one in compile_text(text, make_catalogue())] == [()] * len(text.splitlines())
