"""The generated parts of the documentation are up to date, and in their place."""

import pytest
from docs.generated import outputs
from docs.generated.markdown import escaped, is_generated, table, with_parts

MADE = outputs.outputs()


@pytest.mark.parametrize("path", MADE, ids=lambda path: str(path.relative_to(outputs.DOCS)))
def test_a_generated_file_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == MADE[path], "run `make generate`"


def test_no_page_says_that_it_is_generated_and_is_not():
    pages = [page for page in outputs.DOCS.rglob("*.md") if is_generated(page.read_text(encoding="utf-8"))]
    assert [page.name for page in pages if page not in MADE] == []


@pytest.mark.parametrize("name", outputs.parts())
def test_each_generated_part_stands_on_one_page(name):
    marked = [page.name for page in MADE if f"<!-- generated: {name} -->" in MADE[page]]
    assert len(marked) == 1, marked


def test_a_page_is_renewed_between_its_marks_and_nowhere_else():
    page = (
        "before\n<!-- generated: a -->{}<!-- generated: end -->\nand <!-- generated: b -->{}<!-- generated: end -->\n"
    )
    renewed = page.format("\n\nA\n\n", "\n\nB\n\n")
    assert with_parts(page.format("\nold\n", "\n"), {"a": "A", "b": "B"}) == renewed
    assert with_parts(renewed, {"a": "A", "b": "B"}) == renewed


@pytest.mark.parametrize("page", ["<!-- generated: c -->\n<!-- generated: end -->", "<!-- generated: a -->\nold"])
def test_a_mark_that_is_not_known_or_has_no_end_is_refused(page):
    with pytest.raises(ValueError, match="expected one of a"):
        with_parts(page, {"a": "A"})


def test_texts_of_the_code_do_not_become_markup():
    assert escaped("a <b> `<c>` *d* [e]") == "a \\<b> `<c>` \\*d\\* \\[e\\]"
    assert table(("a", "b"), [("`x|y`", "z")]) == "| a | b |\n| --- | --- |\n| `x\\|y` | z |"
