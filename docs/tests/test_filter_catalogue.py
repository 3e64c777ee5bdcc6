"""docs/admin/filters/index.md names every built-in filter, and the pages of filters name their parameters."""

import re
from pathlib import Path

import pytest

from sluice_dsl.catalogue.builtin_words import BUILTIN_FILTERS

ADMIN = Path(__file__).resolve().parents[1] / "admin"
CATALOGUE = (ADMIN / "filters" / "index.md").read_text()
PARAMETERS = {one.keyword: {parameter.name for parameter in one.parameters} for one in BUILTIN_FILTERS}


def test_the_catalogue_has_every_built_in_filter():
    rows = re.findall(r"^\| (`.*?) \|", CATALOGUE, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(PARAMETERS)


@pytest.mark.parametrize(
    ("page", "keyword"),
    [("filters/compression", "compression"), ("filters/sanitise", "sanitise"), ("caching", "caching")],
)
def test_the_table_of_a_page_has_the_filters_parameters(page, keyword):
    table = (ADMIN / f"{page}.md").read_text().partition("\n| parameter |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == PARAMETERS[keyword]
