"""docs/admin/volumes/policies.md has every metric of volumes, and its sentences compile."""

import re
from pathlib import Path

from sluice_dsl.compile import compile_text
from sluice_dsl.testing import make_catalogue
from sluice_volumes.metrics import VOLUME_METRICS

PAGE = (Path(__file__).resolve().parents[1] / "admin" / "volumes" / "policies.md").read_text()


def test_the_table_has_every_metric_of_volumes():
    assert set(re.findall(r"`(VOLUME_\w+)`", PAGE)) == {one.name for one in VOLUME_METRICS}


def test_its_sentences_compile_without_a_warning():
    (text,) = re.findall(r"^```sluice\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [one.warnings for one in compile_text(text, make_catalogue())] == [()] * len(text.splitlines())
