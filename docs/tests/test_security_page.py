"""Each statement of the security page names the tests that verify it."""

import pytest
from tests.support.pages import ROOT, code_spans, missing_tests, named_tests, read_page, table_rows

GUARANTEES = table_rows(read_page("admin/security.md"), "guarantee")


def test_there_are_guarantees_of_every_sort():
    assert len(GUARANTEES) > 20


@pytest.mark.parametrize("row", GUARANTEES, ids=lambda row: row[0])
def test_a_guarantee_is_held_by_a_test(row):
    named = named_tests(row[1])
    assert missing_tests(named) == []
    assert [path for path in code_spans(row[1]) if "/" in path and not (ROOT / path.partition("::")[0]).exists()] == []
    assert named or (ROOT / code_spans(row[1])[0]).is_file()
