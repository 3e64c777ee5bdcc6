"""The elasticity page is correct: every sentence, every parameter, metric and state."""

import re
from pathlib import Path

import pytest

from sluice_controller.api.serializers.motifs import SPACE_STATES
from sluice_dsl.catalogue.extensions import with_motifs
from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue
from sluice_motif_control.actions import MOTIF_ACTIONS
from sluice_motif_control.spaces import MOTIF_METRICS
from sluice_motifs.templates.registry import load_templates

PAGE = (Path(__file__).parents[1] / "admin" / "elasticity.md").read_text(encoding="utf-8")
SENTENCES = re.findall(r"^```sluice\n(.*?)^```", PAGE, re.M | re.S)
CATALOGUE = with_motifs(make_catalogue(), {word: kind.info for word, kind in load_templates().items()})


@pytest.mark.parametrize("text", SENTENCES)
def test_its_sentences_compile_without_a_warning(text):
    assert [one.warnings for one in compile_text(text, CATALOGUE)] == [()] * len(text.strip().splitlines())


def test_it_names_every_parameter_metric_and_state():
    parameters = {one.name for one in MOTIF_ACTIONS[0].parameters}
    metrics = {one.name for one in MOTIF_METRICS}
    rows = {word for row in re.findall(r"^\| (`.*?`) \|", PAGE, re.M) for word in re.findall(r"`([^`]*)`", row)}
    assert parameters | metrics | set(SPACE_STATES) <= rows
