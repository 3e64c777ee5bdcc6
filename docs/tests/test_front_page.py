"""The figures in README.md are the measured ones."""

import json

import pytest
from tests.support.pages import ROOT, comments, table_rows

FIGURES = table_rows((ROOT / "README.md").read_text(encoding="utf-8"), "what")
MEASURED = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["figures"]


def test_there_are_eight_figures_and_one_was_missed():
    assert len(FIGURES) == 8
    assert [row[0].startswith("**missed:**") for row in FIGURES].count(True) == 1


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: row[0])
def test_a_figure_is_the_one_that_was_measured(row):
    (comment,) = comments(row[-1])
    name, what = map(str.strip, comment.split(":", 1))
    (found,) = (one for one in MEASURED if one["name"] == name and one["what"].startswith(what))
    assert row[1].startswith(found["measured"])
    assert row[2].startswith(found["target"] or "–")
    assert row[0].startswith("**missed:**") == (found["reached"] is False)
