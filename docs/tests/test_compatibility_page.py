"""The compatibility page has the tested versions, and the refusals that it names are checks in the code."""

import re

import pytest
from tests.support.pages import ROOT, code_spans, comments, read_page, table_rows, texts_of

PAGE = read_page("admin/compatibility.md")
TESTED = table_rows(PAGE, "software")
REFUSED = table_rows(PAGE, "what")


def sources(row):
    """File → the text in it on which a row is based."""
    return [tuple(map(str.strip, text.split(":", 1))) for cell in row for text in comments(cell)]


def stands(place, text):
    return any(text in path.read_text(encoding="utf-8") for path in ROOT.glob(place))


@pytest.mark.parametrize("row", TESTED, ids=lambda row: " ".join(row[:2]))
def test_a_version_is_the_one_that_is_tested(row):
    found = sources(row)
    assert found
    assert [text for place, text in found if not stands(place, text)] == []
    numbers = re.findall(r"\d+(?:\.\d+)*", row[1])
    assert [number for number in numbers if not any(number in text for _, text in found)] == []


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_what_is_refused_is_refused_by_the_code(row):
    found = sources(row)
    assert [text for place, text in found if not stands(place, text)] == []
    if not found:
        (path,) = code_spans(row[2])
        (text,) = code_spans(row[1])
        assert text in "\n".join(texts_of(ROOT / path))
