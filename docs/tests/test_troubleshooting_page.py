"""The troubleshooting page quotes texts of the code, and each row names an existing test."""

import pytest
from tests.support.pages import code_spans, code_texts, comments, missing_tests, named_tests, read_page, table_rows

ROWS = table_rows(read_page("admin/troubleshooting.md"), "what you see")
QUOTED = sorted({span for row in ROWS for span in code_spans(row[0])})


def test_there_are_symptoms_of_every_sort():
    assert len(ROWS) > 50
    assert len(QUOTED) > 45


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_text_is_one_of_the_code(text):
    assert text in code_texts()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_symptom_names_the_test_that_makes_it_happen(row):
    named = [name for text in comments(row[-1]) for name in named_tests(text)]
    assert named
    assert missing_tests(named) == []
