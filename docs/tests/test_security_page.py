"""Each statement of the security page names the tests that verify it."""

import pytest
from tests.support.pages import ROOT, code_spans, missing_tests, named_tests, read_page, table_rows

PROMISES = table_rows(read_page("admin/security.md"), "promise")


def test_there_are_promises_of_every_sort():
    assert len(PROMISES) > 20


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row[0])
def test_a_promise_is_held_by_a_test(row):
    named = named_tests(row[1])
    assert missing_tests(named) == []
    assert [path for path in code_spans(row[1]) if "/" in path and not (ROOT / path.partition("::")[0]).exists()] == []
    assert named or (ROOT / code_spans(row[1])[0]).is_file()
