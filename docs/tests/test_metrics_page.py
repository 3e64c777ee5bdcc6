"""docs/reference/metrics.md has every shipped metric, its sentences compile, and the offline vocabulary agrees."""

import re
from pathlib import Path

import pytest

from sluice_core.metrics.usage_metrics import AGENT_METRICS
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_metrics.registry import BUILT_IN, descriptions

PAGE = (Path(__file__).resolve().parents[1] / "reference" / "metrics.md").read_text()
WORKLOAD, MEASURED = PAGE.split("\n## Stored data and free space\n")


def test_the_table_of_workload_metrics_has_every_one_with_its_levels():
    rows = re.findall(r"^\| (`.*?) \| .*? \| (.*?) \|", WORKLOAD, re.MULTILINE)
    levels = {}
    for names, those in rows:
        levels |= dict.fromkeys(re.findall(r"`(\w+)`", names), those)
    assert set(levels) == {one.info.name for one in BUILT_IN}
    for one in BUILT_IN:
        if levels[one.info.name] != "the same":
            assert set(levels[one.info.name].split(", ")) == set(one.info.granularities)


def test_the_other_tables_name_every_metric_that_agents_measure():
    named = {name for row in re.findall(r"^\| (`.*?) \|", MEASURED, re.MULTILINE) for name in row.split(", ")}
    assert named == {f"`{one.name}`" for one in AGENT_METRICS}


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.info.name)
def test_the_offline_vocabulary_has_it_as_it_describes_itself(one):
    assert default_catalogue().metrics[one.info.name] == one.info


def test_the_offline_vocabulary_has_the_shipped_metrics():
    assert default_catalogue().metrics == descriptions()


@pytest.mark.parametrize("text", re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_its_sentences_compile_without_a_warning(text):
    assert [one.warnings for one in compile_text(text, default_catalogue())] == [()] * len(text.splitlines())
