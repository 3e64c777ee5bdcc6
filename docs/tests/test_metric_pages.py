"""What the pages about metrics say is true: every sentence, every name and unit."""

import re
from pathlib import Path

import pytest

from sluice_core.metrics.usage_metrics import AGENT_METRICS
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_metrics.registry import descriptions

DOCS = Path(__file__).parents[1]
PAGES = {name: (DOCS / "admin" / f"{name}.md").read_text(encoding="utf-8") for name in ("node-metrics", "stored")}
SENTENCES = [one for page in PAGES.values() for one in re.findall(r"^```sluice\n(.*?)^```", page, re.M | re.S)]


@pytest.mark.parametrize("text", SENTENCES)
def test_every_sentence_compiles_with_the_shipped_vocabulary(text):
    assert all(not one.warnings for one in compile_text(text, default_catalogue()))


def test_the_offline_vocabulary_has_the_shipped_metrics():
    assert default_catalogue().metrics == descriptions()


def test_the_tables_name_every_metric_that_agents_measure():
    named = {
        name for page in PAGES.values() for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in row.split(", ")
    }
    assert named == {f"`{one.name}`" for one in AGENT_METRICS}
