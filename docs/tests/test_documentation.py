"""Examples of the documentation are code: they keep the contracts, and the pages show them unchanged."""

import importlib.util
import re
from pathlib import Path

import pytest

from sluice_filters.testing import FilterContract
from sluice_metrics.testing import MetricContract

DOCS = Path(__file__).resolve().parents[1]


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", DOCS / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestExampleFilter(FilterContract):
    filter = example("rot13").Rot13
    checked = False


class TestExampleMetric(MetricContract):
    metric = example("deletes_sec").DeletesSec


@pytest.mark.parametrize(("page", "name"), [("first-filter", "rot13"), ("first-metric", "deletes_sec")])
def test_a_page_shows_the_example_as_it_is(page, name):
    shown = re.search(r"```python\n(.*?)```", (DOCS / "tutorials" / f"{page}.md").read_text(), re.DOTALL)[1]
    assert shown == (DOCS / "examples" / f"{name}.py").read_text()


def test_every_decision_has_its_page_in_the_index():
    index = (DOCS / "adr" / "index.md").read_text()
    pages = sorted(path.name for path in (DOCS / "adr").glob("0*.md"))
    assert len(pages) >= 15
    assert all(f"({name})" in index for name in pages)
